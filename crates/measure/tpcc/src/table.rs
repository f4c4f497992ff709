//! The tables of the schema, with BenchmarkSQL's names and column order
//! (`sql.common/tableCreates.sql`).

/// A table of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The parameters of the load: number of warehouses and NURand constants. Not a table of TPC-C.
    Config,
    /// A table of TPC-C (§1.3, §4.3.3.1), like all tables below.
    Item,
    Warehouse,
    /// Ten rows for each warehouse.
    District,
    /// One row for each item and warehouse.
    Stock,
    /// 3,000 rows for each district.
    Customer,
    /// One row for each customer after the load.
    History,
    /// One row for each customer after the load. ORDER is a reserved word of SQL, so the table is
    /// `bmsql_oorder`.
    Order,
    /// Five to fifteen rows for each order.
    OrderLine,
    /// One row for each undelivered order.
    NewOrder,
}

impl Table {
    /// All tables, in an order that satisfies foreign keys.
    pub const ALL: [Self; 10] = [
        Self::Config,
        Self::Item,
        Self::Warehouse,
        Self::District,
        Self::Stock,
        Self::Customer,
        Self::History,
        Self::Order,
        Self::OrderLine,
        Self::NewOrder,
    ];

    /// The tables with rows of each warehouse.
    pub const OF_WAREHOUSE: [Self; 8] = [
        Self::Warehouse,
        Self::District,
        Self::Stock,
        Self::Customer,
        Self::History,
        Self::Order,
        Self::OrderLine,
        Self::NewOrder,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "bmsql_config",
            Self::Item => "bmsql_item",
            Self::Warehouse => "bmsql_warehouse",
            Self::District => "bmsql_district",
            Self::Stock => "bmsql_stock",
            Self::Customer => "bmsql_customer",
            Self::History => "bmsql_history",
            Self::Order => "bmsql_oorder",
            Self::OrderLine => "bmsql_order_line",
            Self::NewOrder => "bmsql_new_order",
        }
    }

    /// The table names, separated by commas.
    #[must_use]
    pub fn list(tables: &[Self]) -> String {
        let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
        names.join(", ")
    }

    /// The name of the CSV file, without the prefix `fileLocation`.
    #[must_use]
    pub fn csv_name(self) -> &'static str {
        match self {
            Self::Config => "config.csv",
            Self::Item => "item.csv",
            Self::Warehouse => "warehouse.csv",
            Self::District => "district.csv",
            Self::Stock => "stock.csv",
            Self::Customer => "customer.csv",
            Self::History => "cust-hist.csv",
            Self::Order => "order.csv",
            Self::OrderLine => "order-line.csv",
            Self::NewOrder => "new-order.csv",
        }
    }

    /// The columns that a load fills, in the order of a row's values.
    #[must_use]
    pub fn columns(self) -> Vec<&'static str> {
        let names = match self {
            Self::Config => "cfg_name cfg_value",
            Self::Item => "i_id i_name i_price i_data i_im_id",
            Self::Warehouse => "w_id w_ytd w_tax w_name w_street_1 w_street_2 w_city w_state w_zip",
            Self::District => {
                "d_w_id d_id d_ytd d_tax d_next_o_id d_name d_street_1 d_street_2 d_city d_state d_zip"
            }
            Self::Stock => {
                "s_w_id s_i_id s_quantity s_ytd s_order_cnt s_remote_cnt s_data s_dist_01 s_dist_02 \
                 s_dist_03 s_dist_04 s_dist_05 s_dist_06 s_dist_07 s_dist_08 s_dist_09 s_dist_10"
            }
            Self::Customer => {
                "c_w_id c_d_id c_id c_discount c_credit c_last c_first c_credit_lim c_balance \
                 c_ytd_payment c_payment_cnt c_delivery_cnt c_street_1 c_street_2 c_city c_state c_zip \
                 c_phone c_since c_middle c_data"
            }
            Self::History => {
                "hist_id h_c_id h_c_d_id h_c_w_id h_d_id h_w_id h_date h_amount h_data"
            }
            Self::Order => "o_w_id o_d_id o_id o_c_id o_carrier_id o_ol_cnt o_all_local o_entry_d",
            Self::OrderLine => {
                "ol_w_id ol_d_id ol_o_id ol_number ol_i_id ol_delivery_d ol_amount ol_supply_w_id \
                 ol_quantity ol_dist_info"
            }
            Self::NewOrder => "no_w_id no_d_id no_o_id",
        };
        names.split_whitespace().collect()
    }
}
