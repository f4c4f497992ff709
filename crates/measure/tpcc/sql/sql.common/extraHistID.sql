-- A sequence numbers the rows that runs add to HISTORY, after those of the load.

select setval('bmsql_hist_id_seq', (select coalesce(max(hist_id), 0) + 1 from bmsql_history), false);
alter table bmsql_history alter column hist_id set default nextval('bmsql_hist_id_seq');
alter table bmsql_history add constraint bmsql_history_pkey primary key (hist_id);
