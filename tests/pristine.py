"""A ledger in PostgreSQL that was used, made as new: faster than making another one."""

from __future__ import annotations

import psycopg

# What a ledger is made of, but for its rows. A story that changes this has changed more than we can undo.
SHAPE = """
select md5(string_agg(line, ',' order by line))
  from (select concat_ws(' ', 'relation', oid, relname, relkind, reloptions, relacl, relrowsecurity) as line
          from pg_class where relnamespace = 'duly'::regnamespace
         union all
        select concat_ws(' ', 'column', attrelid, attnum, attname, atttypid, attnotnull, atthasdef)
          from pg_attribute join pg_class on pg_class.oid = attrelid where relnamespace = 'duly'::regnamespace
         union all
        select concat_ws(' ', 'function', oid, proname, md5(prosrc), proacl, proconfig)
          from pg_proc where pronamespace = 'duly'::regnamespace
         union all
        select concat_ws(' ', 'trigger', tgrelid, tgname, tgenabled, tgfoid) from pg_trigger where not tgisinternal
         union all
        select concat_ws(' ', 'constraint', conrelid, conname, convalidated, pg_get_constraintdef(oid))
          from pg_constraint where connamespace = 'duly'::regnamespace
         union all
        select concat_ws(' ', 'rule', ev_class, rulename) from pg_rewrite
          join pg_class on pg_class.oid = ev_class where relnamespace = 'duly'::regnamespace
         union all
        select concat_ws(' ', 'event', evtname) from pg_event_trigger
         union all
        select concat_ws(' ', 'extension', extname) from pg_extension
         union all
        select concat_ws(' ', 'setting', setrole, setconfig) from pg_db_role_setting
         where setdatabase = (select oid from pg_database where datname = current_database())
         union all
        select concat_ws(' ', 'schema', nspname, nspacl) from pg_namespace
         where nspname <> 'public' and nspname not like 'pg\\_%') shape
"""

# Kept beside the ledger, where no story looks: its shape, and the rows that it is made with.
REMEMBER = """
create schema pristine;
create table pristine.meta as select * from duly.meta where name not in ('ledger_id', 'namespace');
create table pristine.migration as select * from duly.migration;
create table pristine.shape (md5 text);
"""

# Whoever is connected beside us is gone. To wait for it, pg_terminate_backend would look only ten times a second.
ALONE = """
do $$
begin
    perform pg_terminate_backend(pid)
       from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
    for turn in 1..2500 loop
        perform pg_stat_clear_snapshot();
        exit when not exists (
            select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid());
        perform pg_sleep(0.002);
    end loop;
end $$
"""

AS_NEW = """
do $$
declare
    part text;
begin
    set local session_replication_role = replica;
    for part in select relname from pg_class where relnamespace = 'duly'::regnamespace and relkind in ('r', 'p') loop
        execute format('delete from duly.%I', part);
    end loop;
    for part in select relname from pg_class where relnamespace = 'duly'::regnamespace and relkind = 'S' loop
        perform setval(format('duly.%I', part)::regclass, 1, false);
    end loop;
    insert into duly.migration select * from pristine.migration;
    insert into duly.meta select * from pristine.meta;
    insert into duly.meta (name, value) values ('ledger_id', replace(gen_random_uuid()::text, '-', ''));
    insert into duly.meta (name, value) select 'namespace', value from duly.meta where name = 'ledger_id';
    insert into duly.clock (at) values (0);
    insert into duly.look (number, looked_at, recorded, recorded_at, first_at) values (0, 0, 0, 0, 0);
    if exists (select from pg_class where relnamespace = 'public'::regnamespace)
       or exists (select from pg_proc where pronamespace = 'public'::regnamespace)
       or exists (select from pg_type where typnamespace = 'public'::regnamespace) then
        drop schema public cascade;
        create schema public;
        grant usage on schema public to public;
    end if;
end $$
"""


def remember(url: str) -> None:
    """Note what a ledger is made of."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(REMEMBER)
        connection.execute("insert into pristine.shape (md5)" + SHAPE)


def made_as_new(url: str) -> bool:
    """Empty a ledger of all that a story has written; whether it is as it was made then."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(ALONE)
            shape = connection.execute(SHAPE).fetchone()
            if shape != connection.execute("select md5 from pristine.shape").fetchone():
                return False
            connection.execute(AS_NEW)
            return True
    except psycopg.Error:
        return False
