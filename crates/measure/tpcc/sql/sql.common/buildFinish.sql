-- Statistics for the query planner.

vacuum analyze bmsql_warehouse;
vacuum analyze bmsql_district;
vacuum analyze bmsql_customer;
vacuum analyze bmsql_history;
vacuum analyze bmsql_oorder;
vacuum analyze bmsql_new_order;
vacuum analyze bmsql_order_line;
vacuum analyze bmsql_stock;
vacuum analyze bmsql_item;
vacuum analyze bmsql_config;
