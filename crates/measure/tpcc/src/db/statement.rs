//! The SQL statements of the five transactions, one for each round trip of BenchmarkSQL 5.
//!
//! All systems share one text, with `?` for each parameter. [`Statement::lock`] says whether a
//! statement locks the rows that it reads. SQLite has one writer at a time, so it needs no such
//! lock.

use std::borrow::Cow;

use crate::props::Engine;

/// A statement, by its purpose. The variants list the parameters in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Selects the customer's discount, name and credit, and the warehouse's tax: w_id, d_id, c_id.
    OrderCustomer,
    /// Selects and locks the district's tax and next order number: w_id, d_id.
    OrderDistrict,
    /// Increments the district's next order number: w_id, d_id.
    OrderNextId,
    /// Inserts into ORDER: w_id, d_id, o_id, c_id, entry_d, ol_cnt, all_local.
    OrderInsert,
    /// Inserts into NEW-ORDER: w_id, d_id, o_id.
    OrderQueue,
    /// Selects an item's price, name and data: i_id.
    OrderItem,
    /// Selects and locks a stock row with its ten district texts: w_id, i_id.
    OrderStock,
    /// Updates a stock row: quantity, ordered, remote (0 or 1), w_id, i_id.
    OrderStockUpdate,
    /// Inserts into ORDER-LINE: w_id, d_id, o_id, number, i_id, supply_w_id, quantity, amount,
    /// dist_info.
    OrderLine,
    /// Adds a payment to the warehouse: amount, w_id.
    PayWarehouse,
    /// Selects the warehouse's name and address: w_id.
    PayWarehouseRead,
    /// Adds a payment to the district: amount, w_id, d_id.
    PayDistrict,
    /// Selects the district's name and address: w_id, d_id.
    PayDistrictRead,
    /// Selects the numbers of customers with this last name, ordered by first name: w_id, d_id,
    /// last name.
    CustomersNamed,
    /// Selects and locks a customer, without C_DATA: w_id, d_id, c_id.
    PayCustomer,
    /// Subtracts a payment from the customer's balance: amount, amount, w_id, d_id, c_id.
    PayCustomerUpdate,
    /// Selects C_DATA of the locked customer: w_id, d_id, c_id.
    PayCustomerData,
    /// The same as `PayCustomerUpdate`, with a new C_DATA: amount, amount, data, w_id, d_id, c_id.
    PayCustomerUpdateData,
    /// Inserts into HISTORY: c_id, c_d_id, c_w_id, d_id, w_id, date, amount, data.
    PayHistory,
    /// Selects the customer's name and balance: w_id, d_id, c_id.
    StatusCustomer,
    /// Selects the customer's last order: w_id, d_id, c_id.
    StatusOrder,
    /// Selects the lines of an order: w_id, d_id, o_id.
    StatusLines,
    /// Selects the oldest undelivered order: w_id, d_id.
    DeliverOldest,
    /// Deletes the order from NEW-ORDER. The transaction whose delete finds the row delivers the
    /// order: w_id, d_id, o_id.
    DeliverTake,
    /// Sets the carrier of the order: carrier, w_id, d_id, o_id.
    DeliverOrder,
    /// Selects the customer of the order: w_id, d_id, o_id.
    DeliverCustomer,
    /// Sets the delivery date of all lines: delivery_d, w_id, d_id, o_id.
    DeliverLines,
    /// Selects the sum of the lines' amounts: w_id, d_id, o_id.
    DeliverSum,
    /// Adds the sum to the customer's balance: amount, w_id, d_id, c_id.
    DeliverBalance,
    /// Counts the items of the last twenty orders with low stock: w_id, d_id, threshold.
    LowStock,
}

/// Whether a select locks the rows that it reads until the end of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// No lock: the rows are only read, or the statement changes them anyway.
    None,
    /// Always locks, by `for update`.
    Always,
    /// Locks by `for update` on MySQL only. At MySQL's REPEATABLE READ, a plain select returns the
    /// same old row again and again, even after another transaction has deleted or changed it.
    OnMySql,
}

/// The lock and the text of each statement, in the order of the enum.
const TEXTS: [(Statement, Lock, &str); 30] = [
    (
        Statement::OrderCustomer,
        Lock::None,
        "select c_discount, c_last, c_credit, w_tax \
         from bmsql_customer join bmsql_warehouse on w_id = c_w_id \
         where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::OrderDistrict,
        Lock::Always,
        "select d_tax, d_next_o_id from bmsql_district where d_w_id = ? and d_id = ?",
    ),
    (
        Statement::OrderNextId,
        Lock::None,
        "update bmsql_district set d_next_o_id = d_next_o_id + 1 \
         where d_w_id = ? and d_id = ?",
    ),
    (
        Statement::OrderInsert,
        Lock::None,
        "insert into bmsql_oorder \
         (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         values (?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        Statement::OrderQueue,
        Lock::None,
        "insert into bmsql_new_order (no_w_id, no_d_id, no_o_id) values (?, ?, ?)",
    ),
    (
        Statement::OrderItem,
        Lock::None,
        "select i_price, i_name, i_data from bmsql_item where i_id = ?",
    ),
    (
        Statement::OrderStock,
        Lock::Always,
        "select s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 \
         from bmsql_stock where s_w_id = ? and s_i_id = ?",
    ),
    (
        Statement::OrderStockUpdate,
        Lock::None,
        "update bmsql_stock set s_quantity = ?, s_ytd = s_ytd + ?, \
         s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
         where s_w_id = ? and s_i_id = ?",
    ),
    (
        Statement::OrderLine,
        Lock::None,
        "insert into bmsql_order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, \
         ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        Statement::PayWarehouse,
        Lock::None,
        "update bmsql_warehouse set w_ytd = w_ytd + ? where w_id = ?",
    ),
    (
        Statement::PayWarehouseRead,
        Lock::None,
        "select w_name, w_street_1, w_street_2, w_city, w_state, w_zip \
         from bmsql_warehouse where w_id = ?",
    ),
    (
        Statement::PayDistrict,
        Lock::None,
        "update bmsql_district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?",
    ),
    (
        Statement::PayDistrictRead,
        Lock::None,
        "select d_name, d_street_1, d_street_2, d_city, d_state, d_zip \
         from bmsql_district where d_w_id = ? and d_id = ?",
    ),
    (
        Statement::CustomersNamed,
        Lock::None,
        "select c_id from bmsql_customer \
         where c_w_id = ? and c_d_id = ? and c_last = ? order by c_first",
    ),
    (
        Statement::PayCustomer,
        Lock::Always,
        "select c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
         c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance \
         from bmsql_customer where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::PayCustomerUpdate,
        Lock::None,
        "update bmsql_customer set c_balance = c_balance - ?, \
         c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 \
         where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::PayCustomerData,
        // At REPEATABLE READ, a plain select would read the version before the lock.
        Lock::OnMySql,
        "select c_data from bmsql_customer where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::PayCustomerUpdateData,
        Lock::None,
        "update bmsql_customer set c_balance = c_balance - ?, \
         c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? \
         where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::PayHistory,
        Lock::None,
        "insert into bmsql_history \
         (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         values (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        Statement::StatusCustomer,
        Lock::None,
        "select c_first, c_middle, c_last, c_balance from bmsql_customer \
         where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::StatusOrder,
        Lock::None,
        "select o_id, o_entry_d, o_carrier_id from bmsql_oorder \
         where o_w_id = ? and o_d_id = ? and o_c_id = ? order by o_id desc limit 1",
    ),
    (
        Statement::StatusLines,
        Lock::None,
        "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
         from bmsql_order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ? \
         order by ol_number",
    ),
    (
        Statement::DeliverOldest,
        Lock::OnMySql,
        "select no_o_id from bmsql_new_order where no_w_id = ? and no_d_id = ? \
         order by no_o_id limit 1",
    ),
    (
        Statement::DeliverTake,
        Lock::None,
        "delete from bmsql_new_order where no_w_id = ? and no_d_id = ? and no_o_id = ?",
    ),
    (
        Statement::DeliverOrder,
        Lock::None,
        "update bmsql_oorder set o_carrier_id = ? \
         where o_w_id = ? and o_d_id = ? and o_id = ?",
    ),
    (
        Statement::DeliverCustomer,
        Lock::None,
        "select o_c_id from bmsql_oorder where o_w_id = ? and o_d_id = ? and o_id = ?",
    ),
    (
        Statement::DeliverLines,
        Lock::None,
        "update bmsql_order_line set ol_delivery_d = ? \
         where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
    ),
    (
        Statement::DeliverSum,
        Lock::None,
        "select sum(ol_amount) from bmsql_order_line \
         where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
    ),
    (
        Statement::DeliverBalance,
        Lock::None,
        "update bmsql_customer set c_balance = c_balance + ?, \
         c_delivery_cnt = c_delivery_cnt + 1 where c_w_id = ? and c_d_id = ? and c_id = ?",
    ),
    (
        Statement::LowStock,
        Lock::None,
        "select count(distinct s_i_id) from bmsql_district \
         join bmsql_order_line on ol_w_id = d_w_id and ol_d_id = d_id \
         and ol_o_id >= d_next_o_id - 20 and ol_o_id < d_next_o_id \
         join bmsql_stock on s_w_id = d_w_id and s_i_id = ol_i_id \
         where d_w_id = ? and d_id = ? and s_quantity < ?",
    ),
];

impl Statement {
    /// All statements, in the order of [`index`](Self::index).
    pub fn all() -> impl Iterator<Item = Self> {
        TEXTS.into_iter().map(|(statement, _, _)| statement)
    }

    /// Number of statements.
    pub const COUNT: usize = TEXTS.len();

    /// Position among [`all`](Self::all).
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Number of parameters.
    #[must_use]
    pub fn params(self) -> usize {
        self.text().bytes().filter(|byte| *byte == b'?').count()
    }

    /// Whether the statement is a select.
    #[must_use]
    pub fn selects(self) -> bool {
        self.text().starts_with("select")
    }

    /// The SQL text for a system, with `?` for parameters.
    #[must_use]
    pub fn sql(self, engine: Engine) -> Cow<'static, str> {
        let locks = match (self.lock(), engine) {
            (Lock::None, _) | (_, Engine::Sqlite) => false,
            (Lock::Always, _) | (Lock::OnMySql, Engine::MySql) => true,
            (Lock::OnMySql, Engine::Postgres | Engine::OpenGauss) => false,
        };
        if locks {
            Cow::Owned(format!("{} for update", self.text()))
        } else {
            Cow::Borrowed(self.text())
        }
    }

    /// Whether the statement locks the rows that it reads.
    #[must_use]
    pub fn lock(self) -> Lock {
        TEXTS[self.index()].1
    }

    fn text(self) -> &'static str {
        TEXTS[self.index()].2
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_statement_has_a_place_and_a_text_of_its_own() {
        for (at, statement) in Statement::all().enumerate() {
            assert_eq!(statement.index(), at, "{statement:?}");
        }
        let texts: BTreeSet<&str> = Statement::all().map(Statement::text).collect();
        assert_eq!(texts.len(), Statement::COUNT);
        assert!(Statement::LowStock.text().contains("distinct s_i_id"));
        assert_eq!(Statement::LowStock.params(), 3);
        assert_eq!(Statement::OrderLine.params(), 9);
    }

    #[test]
    fn rows_are_kept_where_the_system_has_words_for_it() {
        let locks = |statement: Statement, engine| statement.sql(engine).ends_with(" for update");
        for engine in [Engine::MySql, Engine::Postgres, Engine::OpenGauss] {
            assert!(locks(Statement::OrderStock, engine));
            assert!(!locks(Statement::OrderItem, engine));
        }
        for statement in [Statement::DeliverOldest, Statement::PayCustomerData] {
            assert!(locks(statement, Engine::MySql));
            assert!(!locks(statement, Engine::Postgres));
        }
        assert!(Statement::all().all(|one| !locks(one, Engine::Sqlite)));
    }
}
