-- Statistics for the query planner.

analyze table bmsql_warehouse, bmsql_district, bmsql_customer, bmsql_history, bmsql_oorder, bmsql_new_order,
  bmsql_order_line, bmsql_stock, bmsql_item, bmsql_config;
