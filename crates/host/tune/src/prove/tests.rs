//! Groups, the experiment that is made of a file, and the plan that is left.

use super::*;
use crate::about::Risk;
use crate::form::Form;
use crate::identity::Identity;
use crate::target::Target;

fn step(knob: &str, instance: Option<&str>, stage: Stage) -> Step {
    let path = format!("/proc/sys/{knob}");
    Step {
        knob: knob.to_owned(),
        instance: instance.map(str::to_owned),
        stage,
        risk: Risk::Safe,
        was: Some("60\n".to_owned()),
        now: "1".to_owned(),
        why: String::new(),
        effect: String::new(),
        target: Target::File {
            path,
            form: Form::Words,
        },
        coupled: Vec::new(),
    }
}

fn plan() -> Plan {
    let machine = crate::cores::machines::KUNPENG_96.machine();
    Plan {
        version: 1,
        id: String::new(),
        facts: Identity::of(&machine),
        steps: vec![
            step("irq.affinity", Some("100"), Stage::Affinity),
            step("irq.affinity", Some("101"), Stage::Affinity),
            step("vm.swappiness", None, Stage::Memory),
            step("thp.enabled", None, Stage::Memory),
            step("thp.defrag", None, Stage::Memory),
            step("sysctl.d", None, Stage::Persist),
        ],
        advice: Vec::new(),
        not_applicable: Vec::new(),
        refused: Vec::new(),
        overriders: Vec::new(),
    }
}

#[test]
fn knobs_that_belong_together_are_one_group() {
    let groups = groups(&plan());
    let shown: Vec<(&str, usize)> = groups
        .iter()
        .map(|group| (group.name.as_str(), group.plan.steps.len()))
        .collect();
    assert_eq!(
        shown,
        [
            ("network-placement", 2),
            ("vm.swappiness", 1),
            ("transparent-huge-pages", 2),
            ("all", 5)
        ]
    );
    // Each is a plan of its own, with an id of its own.
    let ids: std::collections::BTreeSet<&str> =
        groups.iter().map(|group| group.plan.id.as_str()).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn each_group_is_an_arm_between_its_hooks() {
    let text = "name = \"e\"\n[[arm]]\nname = \"kernel\"\n[arm.hooks]\nbefore_arm = \"mount\"\n\
                after_arm = [\"umount\"]\nbefore_run = \"x\"\n[[arm]]\nname = \"saiga\"\n\
                [[expect]]\nmetric = \"tpmc\"\n[workload]\nkind = \"tpcc\"\n";
    let groups = groups(&plan());
    let hooks = |group: &Group| Hooks {
        apply: format!("apply {}", group.name),
        undo: format!("undo {}", group.plan.id),
    };
    let made: Table = experiment(text, &groups, &hooks).unwrap().parse().unwrap();
    let arms = made["arm"].as_array().unwrap();
    let names: Vec<&str> = arms
        .iter()
        .map(|arm| arm["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "kernel",
            "network-placement",
            "vm.swappiness",
            "transparent-huge-pages",
            "all"
        ]
    );
    // The reference keeps its own hooks, and applies nothing.
    assert_eq!(arms[0]["hooks"]["before_arm"].as_str(), Some("mount"));
    let hooks = &arms[2]["hooks"];
    let list = |key: &str| -> Vec<String> {
        let list = hooks[key].as_array().unwrap().iter();
        list.map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("before_arm"), ["mount", "apply vm.swappiness"]);
    assert_eq!(
        list("after_arm"),
        [format!("undo {}", groups[1].plan.id), "umount".to_owned()]
    );
    assert_eq!(hooks["before_run"].as_str(), Some("x"));
    assert_eq!(arms[2]["description"].as_str(), Some("vm.swappiness = 1"));
    assert!(!made.contains_key("expect"));
    assert_eq!(made["workload"]["kind"].as_str(), Some("tpcc"));
}

#[test]
fn only_what_gains_is_proven() {
    let plan = plan();
    let effects = BTreeMap::from([
        ("network-placement".to_owned(), Effect::Harm),
        ("vm.swappiness".to_owned(), Effect::NotShown),
        ("transparent-huge-pages".to_owned(), Effect::Gain),
    ]);
    let proven = proven(&plan, &effects);
    let knobs: Vec<&str> = proven.steps.iter().map(|step| step.knob.as_str()).collect();
    assert_eq!(knobs, ["thp.enabled", "thp.defrag"]);
    assert_ne!(proven.id, plan.id);
}

#[test]
fn files_that_are_not_experiments_are_refused() {
    let groups = groups(&plan());
    let hooks = |_: &Group| Hooks {
        apply: String::new(),
        undo: String::new(),
    };
    for (text, expected) in [
        (
            "arm = 3\n",
            "arm of the experiment file must be a list of tables",
        ),
        (
            "[[arm]]\nname = \"a\"\nhooks = 3\n",
            "arm.hooks of the experiment file must be a table",
        ),
        ("= 3", "the experiment file is not valid TOML"),
    ] {
        let error = experiment(text, &groups, &hooks).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let nothing = experiment("", &[], &hooks).unwrap_err();
    assert!(matches!(nothing, ProveError::NothingToProve));
}
