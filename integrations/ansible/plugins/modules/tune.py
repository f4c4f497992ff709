#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Runs `saiga tune` and `saiga topology collect` on a host. All decisions are those of the binary."""

DOCUMENTATION = r"""
module: tune
short_description: Plans, applies, verifies and undoes settings of a database host
description:
  - Calls the program C(saiga) that is installed on the host. The program makes the plan, keeps the
    old values in a journal, and restores them.
  - A plan that changes network devices or interrupts may cut the connection. The program undoes it
    after I(confirm_within), unless I(state=confirmed) is called before. There is deliberately no way
    to apply and confirm in one task, because a task that still runs does not prove that a new
    connection can be made. The role C(saiga.host.tune) opens one and confirms.
  - Needs the rights of root.
author: The Saiga developers
requirements:
  - Python 3.6 or later and C(saiga) on the host
options:
  state:
    description:
      - C(planned) makes a plan and changes no setting. With I(plan), the plan is written there.
      - C(applied) applies the file I(plan) if no option of a plan is given. With options, it makes a
        new plan, writes it to I(plan) if that is given, and applies it. Nothing is changed if all
        values are as planned.
      - C(confirmed) keeps a plan for which the program waits.
      - C(verified) fails if a value differs from the plan.
      - C(undone) restores the old values.
      - C(collected) records the machine in an archive for C(saiga topology --sysroot), without
        what identifies it.
    type: str
    required: true
    choices: [planned, applied, confirmed, verified, undone, collected]
  engine:
    description: The database for which the host is set up. An option of a plan.
    type: str
    choices: [mysql, mariadb, postgres, opengauss, redis, none]
  role:
    description: What runs on the host. An option of a plan.
    type: str
    choices: [server, client, both]
  set:
    description:
      - Values by knob, or by C(KNOB@DEVICE). An option of a plan.
      - Quote C("on") and C("off"), which YAML reads as booleans.
    type: dict
  without:
    description: Knobs for which nothing is proposed. An option of a plan.
    type: list
    elements: str
  server_cores:
    description: Cores of the server, all nodes together. An option of a plan.
    type: int
  interrupt_cores:
    description: Cores for interrupts, all nodes together. An option of a plan.
    type: int
  queues:
    description: Queues that each network device is to have. An option of a plan.
    type: int
  near_device:
    description: Use only cores of the nodes of the network devices for interrupts. An option of a plan.
    type: bool
  devices:
    description: Network devices whose interrupts are placed. An option of a plan.
    type: list
    elements: str
  persistent:
    description: Also write files that set the values after a restart. An option of a plan.
    type: bool
  no_interrupts:
    description: Leave the interrupts of network devices where they are. An option of a plan.
    type: bool
  plan:
    description: Path of a plan file on the host. Its directory must exist.
    type: path
  id:
    description: The ID of an applied plan, or its beginning.
    type: str
  confirm_within:
    description: Time to confirm a plan that may cut the connection, such as C(60s) or C(5min).
    type: str
  accept_others:
    description: For I(state=undone), leave values that other programs changed.
    type: bool
    default: false
  journal:
    description: Directory of the journals on the host. The default is that of the program.
    type: path
  binary:
    description: The program, as a path or as a name that is searched in PATH and /usr/local/bin.
    type: str
    default: saiga
  dest:
    description: For I(state=collected), path of the archive on the host.
    type: path
  force:
    description: For I(state=collected), replace an archive that exists.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show what would be changed (with --check --diff nothing is applied)
  saiga.host.tune:
    state: applied
    engine: mysql
    set:
      net.core.somaxconn: 8192

- name: Write a plan, to be read before it is applied
  saiga.host.tune:
    state: planned
    engine: postgres
    plan: /root/plan.toml

- name: Apply this plan
  saiga.host.tune:
    state: applied
    plan: /root/plan.toml
  register: applied

- name: Prove that a new connection can be made
  ansible.builtin.wait_for_connection:
    timeout: 30
  when: applied.needs_confirmation

- name: Keep the plan
  saiga.host.tune:
    state: confirmed
    id: "{{ applied.id }}"
  when: applied.needs_confirmation

- name: Compare the host with the plan
  saiga.host.tune:
    state: verified
    plan: /root/plan.toml

- name: Put the old values back
  saiga.host.tune:
    state: undone
    plan: /root/plan.toml
"""

RETURN = r"""
id:
  description:
    - The ID of the applied plan. If nothing had to be changed, it is the ID of an earlier plan that
      waits to be confirmed, or null.
  returned: applied, confirmed, undone
  type: str
needs_confirmation:
  description: Whether the program undoes the plan unless it is confirmed.
  returned: applied
  type: bool
undone_unless_confirmed_at:
  description: When the program undoes the plan, in seconds since 1970; null if it does not.
  returned: applied, if changed
  type: int
differences:
  description: Values that are not as planned, each with C(name), C(found) and C(wanted).
  returned: planned, applied, verified
  type: list
  elements: dict
text:
  description: The plan with reasons, expected effects and risks, as lines.
  returned: planned, and applied with options of a plan
  type: list
  elements: str
notes:
  description: Remarks of the program.
  returned: planned, and applied with options of a plan
  type: list
  elements: str
steps:
  description: What became of each step.
  returned: undone
  type: list
  elements: dict
"""

import json
import os
import re
import tempfile

from ansible.module_utils.basic import AnsibleModule

# Exit statuses of the program.
DONE = 0
ANSWER_IS_NO = 1

# States in the answer of `saiga tune history`.
APPLIED = "applied"
WAITS = "waits to be confirmed"

# Options of a plan that take a value, and those that are flags.
VALUES = ("engine", "role", "server_cores", "interrupt_cores", "queues")
FLAGS = ("near_device", "persistent", "no_interrupts")
LISTS = {"without": "--without", "devices": "--device"}
GOAL = VALUES + FLAGS + tuple(LISTS) + ("set",)


def option(name):
    return "--" + name.replace("_", "-")


class Saiga:
    """The program on this host."""

    def __init__(self, module):
        self.module = module
        name = module.params["binary"]
        if "/" in name:
            path = os.path.expanduser(name)
            is_found = os.path.isfile(path) and os.access(path, os.X_OK)
            self.path = path if is_found else None
            place = "does not exist or is not executable"
        else:
            self.path = module.get_bin_path(name, opt_dirs=["/usr/local/bin"])
            place = "is not in PATH"
        if self.path is None:
            module.fail_json(
                msg=f"{name} {place} on this host: install Saiga, or set the option `binary`"
            )

    def call(self, *words, can_be_no=False):
        """Runs the program. Fails with its own message; status 1 is an answer if `can_be_no`."""
        rc, out, err = self.module.run_command([self.path, *words])
        if rc == DONE or (can_be_no and rc == ANSWER_IS_NO):
            return rc, out, err
        said = err.strip() or out.strip()
        msg = said or f"saiga {' '.join(words)} ended with status {rc}"
        return self.module.fail_json(msg=msg, rc=rc, stdout=out, stderr=err)

    def tune(self, *words, can_be_no=False):
        journal = self.module.params["journal"]
        # A word after the verb: each verb has this option.
        more = ["--journal", journal] if journal else []
        return self.call("tune", *words, *more, can_be_no=can_be_no)

    def answer(self, *words, can_be_no=False):
        """Runs `saiga tune` with JSON as its answer. Returns the status and the answer."""
        rc, out, err = self.tune(*words, "--json", can_be_no=can_be_no)
        try:
            return rc, json.loads(out)
        except ValueError:
            return self.module.fail_json(
                msg="saiga gave no JSON: its version does not fit this collection",
                stdout=out,
                stderr=err,
            )

    def differences(self, plan):
        return self.answer("verify", plan, can_be_no=True)[1]["differences"]

    def history(self):
        return self.answer("history")[1]

    def entry(self, name):
        """The newest application whose ID, or whose plan's ID, begins with `name`."""
        found = None
        for entry in self.history():
            plan = entry["id"].partition("-")[2]
            if entry["id"].startswith(name) or plan.startswith(name):
                found = entry
        return found


def setting(module, knob, value):
    """The text of a value that YAML may have read as a number."""
    if isinstance(value, bool):
        module.fail_json(
            msg=f"set: the value of {knob} is a boolean; quote it, such as \"on\", \"off\" or \"1\""
        )
    if not isinstance(value, (str, int, float)):
        module.fail_json(msg=f"set: the value of {knob} must be a text or a number")
    return f"{knob}={value}"


def goal(module):
    """The options of `saiga tune plan`."""
    params = module.params
    words = []
    for name in VALUES:
        if params[name] is not None:
            words += [option(name), str(params[name])]
    words += [option(name) for name in FLAGS if params[name]]
    for name, word in LISTS.items():
        for value in params[name] or []:
            words += [word, value]
    for knob, value in (params["set"] or {}).items():
        words += ["--set", setting(module, knob, value)]
    return words


def has_goal(module):
    return any(module.params[name] is not None for name in GOAL)


def plan_id(module, path):
    """The ID in a plan file; None if there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(r'^id = "(\w+)"$', file.read(), re.MULTILINE)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        return module.fail_json(msg=f"cannot read the plan {path}: {error}")
    if found is None:
        module.fail_json(msg=f"{path} is not a plan")
    return found.group(1)


def must_exist(module, path):
    if plan_id(module, path) is None:
        module.fail_json(
            msg=f"the plan {path} does not exist on this host; make it with state=planned"
        )


def diff(differences):
    """The values before and after, for --diff."""

    def lines(side):
        text = ""
        for one in differences:
            value = one[side]
            # A file is shown as a whole.
            if "\n" in value:
                text += f"{one['name']}:\n{value}"
            else:
                text += f"{one['name']} = {value}\n"
        return text

    return {
        "before_header": "values now",
        "after_header": "values of the plan",
        "before": lines("found"),
        "after": lines("wanted"),
    }


def make_plan(module, saiga):
    """Makes a plan in a temporary file, and returns its path and what is to be returned."""
    folder = tempfile.mkdtemp(dir=module.tmpdir)
    path = os.path.join(folder, "plan.toml")
    rc, out, err = saiga.tune("plan", *goal(module), "--out", path, can_be_no=True)
    said = [line for line in err.splitlines() if line != f"saiga: wrote {path}"]
    result = {"text": out.splitlines(), "notes": said, "differences": []}
    if rc == ANSWER_IS_NO:
        return None, result
    result["differences"] = saiga.differences(path)
    return path, result


def keep_plan(module, path):
    """Moves a new plan to where the user wants it. Returns its path."""
    wanted = module.params["plan"]
    if wanted is None:
        return path
    if not os.path.isdir(os.path.dirname(os.path.abspath(wanted))):
        module.fail_json(msg=f"the directory of {wanted} does not exist on this host")
    module.atomic_move(path, wanted)
    return wanted


def planned(module, saiga):
    path, result = make_plan(module, saiga)
    wanted = module.params["plan"]
    is_new = bool(path and wanted) and plan_id(module, wanted) != plan_id(module, path)
    if is_new and not module.check_mode:
        keep_plan(module, path)
    return dict(result, changed=is_new, diff=diff(result["differences"]))


def applied(module, saiga):
    if has_goal(module):
        path, result = make_plan(module, saiga)
        is_needed = path is not None
    else:
        path = module.params["plan"]
        if path is None:
            module.fail_json(msg="state=applied needs `plan`, or options of a plan such as `engine`")
        must_exist(module, path)
        result = {"differences": saiga.differences(path)}
        is_needed = bool(result["differences"])
    result.update(changed=is_needed, diff=diff(result["differences"]))
    if not is_needed:
        # An earlier plan that nobody confirms would be undone.
        waiting = [entry["id"] for entry in saiga.history() if entry["state"] == WAITS]
        last = waiting[-1] if waiting else None
        return dict(result, id=last, needs_confirmation=bool(waiting))
    if module.check_mode:
        return dict(result, id=None, needs_confirmation=False)
    if has_goal(module):
        path = keep_plan(module, path)
    within = module.params["confirm_within"]
    more = ["--confirm-within", within] if within else []
    answer = saiga.answer("apply", path, *more)[1]
    deadline = answer["undone_unless_confirmed_at"]
    return dict(
        result,
        id=answer["id"],
        needs_confirmation=deadline is not None,
        undone_unless_confirmed_at=deadline,
    )


def named(module):
    """The ID of the plan that the user means."""
    if module.params["id"] is not None:
        return module.params["id"]
    must_exist(module, module.params["plan"])
    return plan_id(module, module.params["plan"])


def confirmed(module, saiga):
    name = named(module)
    entry = saiga.entry(name)
    state = "not in the history" if entry is None else entry["state"]
    if state == APPLIED:
        return {"changed": False, "id": entry["id"]}
    if not module.check_mode:
        saiga.tune("confirm", name)
    elif state != WAITS:
        module.fail_json(msg=f"plan {name} does not wait for a confirmation: {state}")
    return {"changed": True, "id": name if entry is None else entry["id"]}


def verified(module, saiga):
    plan = module.params["plan"]
    if plan is not None:
        must_exist(module, plan)
    differences = saiga.differences(plan or module.params["id"])
    if differences:
        lines = [f"{one['name']} is {one['found']}, not {one['wanted']}" for one in differences]
        module.fail_json(msg="\n".join(lines), differences=differences, changed=False)
    return {"changed": False, "differences": []}


def undone(module, saiga):
    name = named(module)
    entry = saiga.entry(name)
    if entry is None and module.params["plan"] is not None:
        # The plan was never applied.
        return {"changed": False, "id": None, "steps": []}
    if module.check_mode and entry is not None:
        return {"changed": entry["to_undo"] > 0, "id": entry["id"], "steps": []}
    more = ["--accept-others"] if module.params["accept_others"] else []
    rc, report = saiga.answer("undo", name, *more, can_be_no=True)
    steps = report["steps"]
    if rc == ANSWER_IS_NO:
        left = [f"{step['name']}: {step['outcome']}" for step in steps if not step["is_done"]]
        module.fail_json(
            msg="\n".join(["not everything is undone", *left]),
            id=report["id"],
            steps=steps,
            changed=any(step["is_done"] for step in steps),
        )
    return {"changed": bool(steps), "id": report["id"], "steps": steps}


def collected(module, saiga):
    dest = module.params["dest"]
    is_there = os.path.exists(dest)
    if is_there and not module.params["force"]:
        return {"changed": False, "dest": dest}
    if not module.check_mode:
        folder = tempfile.mkdtemp(dir=module.tmpdir)
        path = os.path.join(folder, os.path.basename(dest))
        saiga.call("topology", "collect", "--out", path)
        module.atomic_move(path, dest)
    return {"changed": True, "dest": dest}


STATES = {
    "planned": planned,
    "applied": applied,
    "confirmed": confirmed,
    "verified": verified,
    "undone": undone,
    "collected": collected,
}


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": list(STATES)},
            "engine": {
                "type": "str",
                "choices": ["mysql", "mariadb", "postgres", "opengauss", "redis", "none"],
            },
            "role": {"type": "str", "choices": ["server", "client", "both"]},
            "set": {"type": "dict"},
            "without": {"type": "list", "elements": "str"},
            "server_cores": {"type": "int"},
            "interrupt_cores": {"type": "int"},
            "queues": {"type": "int"},
            "near_device": {"type": "bool"},
            "devices": {"type": "list", "elements": "str"},
            "persistent": {"type": "bool"},
            "no_interrupts": {"type": "bool"},
            "plan": {"type": "path"},
            "id": {"type": "str"},
            "confirm_within": {"type": "str"},
            "accept_others": {"type": "bool", "default": False},
            "journal": {"type": "path"},
            "binary": {"type": "str", "default": "saiga"},
            "dest": {"type": "path"},
            "force": {"type": "bool", "default": False},
        },
        mutually_exclusive=[("plan", "id")],
        required_if=[
            ("state", "confirmed", ("plan", "id"), True),
            ("state", "verified", ("plan", "id"), True),
            ("state", "undone", ("plan", "id"), True),
            ("state", "collected", ("dest",)),
        ],
        supports_check_mode=True,
    )
    state = module.params["state"]
    if state not in ("planned", "applied"):
        given = [name for name in GOAL if module.params[name] is not None]
        if given:
            module.fail_json(msg=f"state={state} takes no options of a plan: {', '.join(given)}")
    module.exit_json(**STATES[state](module, Saiga(module)))


if __name__ == "__main__":
    main()
