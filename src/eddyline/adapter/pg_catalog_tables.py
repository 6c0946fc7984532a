"""What relations ``pg_catalog`` and ``information_schema`` have, and which columns.

What cannot exist here is an empty relation.
"""

from __future__ import annotations

from typing import Final

from eddyline.adapter.information_schema import INFORMATION_TABLES
from eddyline.adapter.pg_catalog import (
    catalog_texts,
    pg_am,
    pg_attrdef,
    pg_attribute,
    pg_auth_members,
    pg_authid,
    pg_class,
    pg_collation,
    pg_constraint,
    pg_database,
    pg_db_role_setting,
    pg_default_acl,
    pg_group,
    pg_index,
    pg_indexes,
    pg_matviews,
    pg_namespace,
    pg_opclass,
    pg_roles,
    pg_shadow,
    pg_tables,
    pg_tablespace,
    pg_type,
    pg_user,
    pg_views,
    role_rights,
)
from eddyline.adapter.pg_objects import PG_CATALOG
from eddyline.adapter.pg_sequences import SEQUENCES_SHAPE, dependency_rows, sequence_rows, sequences_body
from eddyline.adapter.settings_relation import SETTINGS_NAME, SETTINGS_SHAPE, settings_rows
from eddyline.adapter.system_relations import SystemTable, seen_table, system_table

__all__ = ["OF_SUPERUSERS", "PG_TABLES"]

#: relations of ``pg_catalog`` that only superusers read: they have what is kept of passwords
OF_SUPERUSERS: Final = frozenset(("pg_authid", "pg_shadow"))
_INTERNAL: Final = "mz_internal"

PG_TABLES: Final[tuple[SystemTable, ...]] = (
    system_table(PG_CATALOG, "pg_namespace", "oid:o nspname nspowner:o nspacl:T", pg_namespace),
    system_table(
        PG_CATALOG,
        "pg_class",
        "oid:o relname relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o reltablespace:o "
        "relpages:i reltuples:r relallvisible:i reltoastrelid:o relhasindex:b relisshared:b relpersistence "
        "relkind relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b "
        "relforcerowsecurity:b relispopulated:b relreplident relispartition:b relacl:T reloptions:T relpartbound",
        pg_class,
    ),
    system_table(
        PG_CATALOG,
        "pg_attribute",
        "attrelid:o attname atttypid:o attstattarget:i attlen:s attnum:s attndims:i atttypmod:i attbyval:b "
        "attnotnull:b atthasdef:b attidentity attgenerated attisdropped:b attislocal:b attinhcount:i "
        "attcollation:o attacl:T attoptions:T attstorage attcompression",
        pg_attribute,
    ),
    seen_table(
        PG_CATALOG, SETTINGS_NAME, SETTINGS_SHAPE, lambda contents, viewer: settings_rows(viewer.settings), "settings"
    ),
    system_table(PG_CATALOG, "pg_attrdef", "oid:o adrelid:o adnum:s adbin", pg_attrdef),
    system_table(
        PG_CATALOG,
        "pg_type",
        "oid:o typname typnamespace:o typowner:o typlen:s typbyval:b typtype typcategory typispreferred:b "
        "typisdefined:b typdelim typrelid:o typelem:o typarray:o typinput typoutput typreceive typsend "
        "typnotnull:b typbasetype:o typtypmod:i typndims:i typcollation:o typdefault typacl:T typstorage",
        pg_type,
    ),
    system_table(
        PG_CATALOG,
        "pg_index",
        "indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b indisprimary:b indisexclusion:b "
        "indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indnullsnotdistinct:b indislive:b "
        "indisreplident:b indkey:V indcollation:W indclass:W indoption:V indexprs indpred",
        pg_index,
    ),
    system_table(
        PG_CATALOG,
        "pg_constraint",
        "oid:o conname connamespace:o contype condeferrable:b condeferred:b convalidated:b conrelid:o "
        "contypid:o conindid:o confrelid:o confupdtype confdeltype confmatchtype conkey:S confkey:S",
        pg_constraint,
    ),
    system_table(
        PG_CATALOG,
        "pg_database",
        "oid:o datname datdba:o encoding:i datlocprovider datistemplate:b datallowconn:b datconnlimit:i "
        "datcollate datctype daticulocale dattablespace:o datacl:T",
        pg_database,
    ),
    system_table(
        PG_CATALOG,
        "pg_roles",
        "oid:o rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b "
        "rolconnlimit:i rolpassword rolvaliduntil:z rolbypassrls:b rolconfig:T",
        pg_roles,
    ),
    system_table(
        PG_CATALOG,
        "pg_authid",
        "oid:o rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b "
        "rolbypassrls:b rolconnlimit:i rolpassword rolvaliduntil:z",
        pg_authid,
    ),
    system_table(
        PG_CATALOG,
        "pg_shadow",
        "usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil:z useconfig:T",
        pg_shadow,
    ),
    system_table(
        PG_CATALOG,
        "pg_user",
        "usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil:z useconfig:T",
        pg_user,
    ),
    system_table(PG_CATALOG, "pg_group", "groname grosysid:o grolist:O", pg_group),
    system_table(PG_CATALOG, "pg_am", "oid:o amname amtype", pg_am),
    system_table(
        PG_CATALOG,
        "pg_collation",
        "oid:o collname collnamespace:o collowner:o collprovider collisdeterministic:b collencoding:i collcollate "
        "collctype colliculocale collversion",
        pg_collation,
    ),
    system_table(
        PG_CATALOG,
        "pg_tables",
        "schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b rowsecurity:b",
        pg_tables,
    ),
    system_table(PG_CATALOG, "pg_views", "schemaname viewname viewowner definition", pg_views),
    system_table(
        PG_CATALOG,
        "pg_matviews",
        "schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b definition",
        pg_matviews,
    ),
    system_table(PG_CATALOG, "pg_indexes", "schemaname tablename indexname tablespace indexdef", pg_indexes),
    system_table(
        PG_CATALOG,
        "pg_proc",
        "oid:o proname pronamespace:o proowner:o prolang:o prokind prosecdef:b proleakproof:b proisstrict:b "
        "proretset:b provolatile proparallel pronargs:s prorettype:o proargtypes:W prosrc proacl:T proargnames:T "
        "proallargtypes:O provariadic:o procost:r prorows:r proconfig:T probin",
    ),
    system_table(PG_CATALOG, "pg_description", "objoid:o classoid:o objsubid:i description"),
    system_table(PG_CATALOG, "pg_inherits", "inhrelid:o inhparent:o inhseqno:i inhdetachpending:b"),
    system_table(PG_CATALOG, "pg_enum", "oid:o enumtypid:o enumsortorder:r enumlabel"),
    system_table(PG_CATALOG, "pg_range", "rngtypid:o rngsubtype:o rngmultitypid:o"),
    system_table(PG_CATALOG, "pg_trigger", "oid:o tgrelid:o tgname tgisinternal:b tgenabled tgfoid:o tgtype:s"),
    system_table(PG_CATALOG, "pg_extension", "oid:o extname extowner:o extnamespace:o extrelocatable:b extversion"),
    system_table(PG_CATALOG, "pg_auth_members", "roleid:o member:o grantor:o admin_option:b", pg_auth_members),
    system_table(PG_CATALOG, "pg_partitioned_table", "partrelid:o partstrat partnatts:s"),
    system_table(
        PG_CATALOG,
        "pg_sequence",
        "seqrelid:o seqtypid:o seqstart:o seqincrement:o seqmax:o seqmin:o seqcache:o seqcycle:b",
        sequence_rows,
    ),
    system_table(PG_CATALOG, "pg_sequences", SEQUENCES_SHAPE, body=sequences_body),
    system_table(
        PG_CATALOG, "pg_policy", "oid:o polname polrelid:o polcmd polpermissive:b polroles:O polqual polwithcheck"
    ),
    system_table(
        PG_CATALOG,
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname stxnamespace:o stxowner:o stxstattarget:i stxkeys:V stxkind:T",
    ),
    system_table(
        PG_CATALOG,
        "pg_publication",
        "oid:o pubname pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b pubviaroot:b",
    ),
    system_table(PG_CATALOG, "pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    system_table(PG_CATALOG, "pg_publication_rel", "oid:o prpubid:o prrelid:o prqual prattrs:V"),
    system_table(PG_CATALOG, "pg_rewrite", "oid:o rulename ev_class:o ev_type ev_enabled is_instead:b"),
    system_table(
        PG_CATALOG,
        "pg_depend",
        "classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype",
        dependency_rows,
    ),
    system_table(PG_CATALOG, "pg_foreign_table", "ftrelid:o ftserver:o ftoptions:T"),
    system_table(PG_CATALOG, "pg_tablespace", "oid:o spcname spcowner:o spcacl:T spcoptions:T", pg_tablespace),
    system_table(
        PG_CATALOG,
        "pg_language",
        "oid:o lanname lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o lanvalidator:o lanacl:T",
    ),
    system_table(
        PG_CATALOG,
        "pg_operator",
        "oid:o oprname oprnamespace:o oprowner:o oprkind oprleft:o oprright:o oprresult:o oprcode",
    ),
    system_table(
        PG_CATALOG,
        "pg_opclass",
        "oid:o opcmethod:o opcname opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b opckeytype:o",
        pg_opclass,
    ),
    system_table(PG_CATALOG, "pg_opfamily", "oid:o opfmethod:o opfname opfnamespace:o opfowner:o"),
    system_table(PG_CATALOG, "pg_cast", "oid:o castsource:o casttarget:o castfunc:o castcontext castmethod"),
    system_table(
        PG_CATALOG,
        "pg_conversion",
        "oid:o conname connamespace:o conowner:o conforencoding:i contoencoding:i conproc condefault:b",
    ),
    system_table(PG_CATALOG, "pg_event_trigger", "oid:o evtname evtevent evtowner:o evtfoid:o evtenabled evttags:T"),
    system_table(PG_CATALOG, "pg_db_role_setting", "setdatabase:o setrole:o setconfig:T", pg_db_role_setting),
    system_table(
        PG_CATALOG, "pg_default_acl", "oid:o defaclrole:o defaclnamespace:o defaclobjtype defaclacl:T", pg_default_acl
    ),
    system_table(
        PG_CATALOG, "pg_foreign_server", "oid:o srvname srvowner:o srvfdw:o srvtype srvversion srvacl:T srvoptions:T"
    ),
    system_table(
        PG_CATALOG,
        "pg_foreign_data_wrapper",
        "oid:o fdwname fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:T fdwoptions:T",
    ),
    system_table(PG_CATALOG, "pg_shdescription", "objoid:o classoid:o description"),
    *INFORMATION_TABLES,
    system_table(
        _INTERNAL,
        "mz_role_rights",
        "role_name role_oid object_kind object_name qualified_name object_oid right_name quoted_name",
        role_rights,
    ),
    system_table(_INTERNAL, "mz_catalog_texts", "fn_kind fn_oid:o fn_modifier:i fn_text", catalog_texts),
)
