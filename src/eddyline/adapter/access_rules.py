"""Who may do what: roles, memberships, owners and grants, as one immutable part of a catalog version.

Objects go by keys: an item's id, ``<item's id>#<position>`` of a column, ``schema/<name>``, or ``DATABASE_KEY``.
Rights are PostgreSQL's words.

Invariants:
I1  every role id in ``memberships``, ``owners``, ``grants``, ``defaults`` and ``settings`` is one of ``roles``, or
    ``PUBLIC`` as a grantee, or ``EVERYBODY`` of a setting;
I2  the role ``BOOTSTRAP`` exists, and owns whatever has no entry in ``owners``;
I3  memberships make no cycle;
I4  a column has no owner of its own, and no entry in ``grants`` unless something of it is granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from eddyline.errors import make_error
from eddyline.sql.catalog_view import CatalogItem
from eddyline.sql.role_statements import ALL_RIGHTS

__all__ = [
    "BOOTSTRAP",
    "DATABASE_KEY",
    "EVERYBODY",
    "PUBLIC",
    "AccessRules",
    "DefaultGrants",
    "Grant",
    "Membership",
    "Role",
    "RoleSettings",
    "column_key",
    "column_of",
    "schema_key",
]

PUBLIC: Final = 0
#: whose settings all sessions begin with
EVERYBODY: Final = 0
BOOTSTRAP: Final = 10
DATABASE_KEY: Final = "database"
_FIRST_ID: Final = 16_384


@dataclass(frozen=True, slots=True)
class Role:
    """``id``: its OID, which it keeps when it is renamed.

    ``password``: the text of a verifier.  ``valid_until``: when that ends, in µs since 1970-01-01 UTC.
    ``connection_limit``: -1 for none.
    """

    id: int
    name: str
    login: bool = False
    superuser: bool = False
    createdb: bool = False
    createrole: bool = False
    inherit: bool = True
    password: str | None = field(default=None, repr=False)
    valid_until: int | None = None
    connection_limit: int = -1


@dataclass(frozen=True, slots=True)
class Membership:
    role: int
    member: int
    admin: bool
    grantor: int


@dataclass(frozen=True, slots=True)
class Grant:
    """``grantable``: with grant option."""

    grantee: int
    right: str
    grantor: int
    grantable: bool = False


@dataclass(frozen=True, slots=True)
class DefaultGrants:
    """What is granted of the objects that role ``owner`` makes, in ``schema`` or (None) anywhere.

    ``kind``: table (views too) or schema.
    """

    owner: int
    schema: str | None
    kind: str
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """Values that sessions of a role, or of ``EVERYBODY``, begin with.

    ``in_database``: those that were said of the database.
    """

    role: int
    in_database: bool
    values: Mapping[str, str]


def schema_key(schema: str) -> str:
    return f"schema/{schema}"


def column_key(item_id: str, position: int) -> str:
    """``position``: from 0."""
    return f"{item_id}#{position}"


def column_of(key: str) -> tuple[str, int] | None:
    """The item's id and the position, if it is a column's key."""
    item_id, sign, position = key.partition("#")
    return (item_id, int(position)) if sign and not key.startswith("schema/") else None


#: what PUBLIC has of objects that nobody has granted or revoked anything of
_AT_FIRST: Final[Mapping[str, tuple[Grant, ...]]] = {
    DATABASE_KEY: (Grant(PUBLIC, "CONNECT", BOOTSTRAP), Grant(PUBLIC, "TEMPORARY", BOOTSTRAP)),
    schema_key("public"): (Grant(PUBLIC, "USAGE", BOOTSTRAP),),
}


def _first_roles() -> Mapping[str, Role]:
    role = Role(BOOTSTRAP, "postgres", login=True, superuser=True, createdb=True, createrole=True)
    return {role.name: role}


@dataclass(frozen=True, slots=True)
class AccessRules:
    """``roles``: by name.  Questions cost O(1) for superusers, else O(memberships + the object's grants)."""

    roles: Mapping[str, Role] = field(default_factory=_first_roles)
    memberships: tuple[Membership, ...] = ()
    owners: Mapping[str, int] = field(default_factory=dict)
    grants: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)
    next_id: int = _FIRST_ID
    defaults: tuple[DefaultGrants, ...] = ()
    settings: tuple[RoleSettings, ...] = ()

    # -- questions ------------------------------------------------------------------------------------------------

    def role(self, name: str) -> Role:
        """42704 for one that there is not."""
        found = self.roles.get(name)
        if found is None:
            raise make_error("42704", f'role "{name}" does not exist', hint="CREATE ROLE makes one.")
        return found

    def named(self, role_id: int) -> Role:
        return next(role for role in self.roles.values() if role.id == role_id)

    def is_superuser(self, name: str) -> bool:
        """False for a role that there is not."""
        role = self.roles.get(name)
        return role is not None and role.superuser

    def owner(self, key: str) -> int:
        """Of a column its table's."""
        column = column_of(key)
        return self.owners.get(key if column is None else column[0], BOOTSTRAP)

    def granted(self, key: str) -> tuple[Grant, ...]:
        return self.grants.get(key, _AT_FIRST.get(key, ()))

    def acts_as(self, role: Role) -> frozenset[int]:
        """The roles whose rights it has without SET ROLE: its own, and what it inherits."""
        inheriting = {r.id for r in self.roles.values() if r.inherit}
        return self._reached(role.id, through=inheriting)

    def may_become(self, role: Role) -> frozenset[int]:
        """The roles that it is a member of, directly or not, and itself."""
        return self._reached(role.id, through=None)

    def _reached(self, start: int, through: set[int] | None) -> frozenset[int]:
        reached, left = {start}, [start]
        while left:
            member = left.pop()
            if through is not None and member not in through:
                continue
            for m in self.memberships:
                if m.member == member and m.role not in reached:
                    reached.add(m.role)
                    left.append(m.role)
        return frozenset(reached)

    def owns(self, role: Role, key: str) -> bool:
        return role.superuser or self.owner(key) in self.acts_as(role)

    def allows(self, role: Role, key: str, right: str) -> bool:
        """Whether it has the right: as a superuser, the owner, a grantee, or anybody."""
        if role.superuser:
            return True
        selves = self.acts_as(role)
        return self.owner(key) in selves or any(
            g.right == right and (g.grantee == PUBLIC or g.grantee in selves) for g in self.granted(key)
        )

    def grantor(self, role: Role, key: str, right: str) -> int | None:
        """As whom it grants the right: the owner, or a role that has it with grant option; None if it may not."""
        if self.owns(role, key):
            return self.owner(key)
        selves, column = self.acts_as(role), column_of(key)
        given = self.granted(key) if column is None else (*self.granted(column[0]), *self.granted(key))
        return next((g.grantee for g in given if g.right == right and g.grantable and g.grantee in selves), None)

    def allows_columns(self, role: Role, item: CatalogItem, right: str, positions: Iterable[int]) -> bool:
        """Whether it has the right on the table or view, or on those columns, without any on some column."""
        if self.allows(role, item.id, right):
            return True
        chosen = tuple(positions)
        if chosen:
            return all(self.allows(role, column_key(item.id, p), right) for p in chosen)
        return any(self.allows(role, column_key(item.id, p), right) for p in range(len(item.columns)))

    def held_by(self, role_id: int) -> list[tuple[str, bool]]:
        """Keys of what it owns (True), and of what it holds or has granted rights of (False)."""
        owned = [(key, True) for key, owner in self.owners.items() if owner == role_id]
        return owned + [
            (key, False)
            for key, grants in self.grants.items()
            if any(role_id in (g.grantee, g.grantor) for g in grants)
        ]

    def default_grants(self, owner: int, schema: str | None, kind: str) -> DefaultGrants:
        """Without grants where nothing was said."""
        same = (d for d in self.defaults if (d.owner, d.schema, d.kind) == (owner, schema, kind))
        return next(same, DefaultGrants(owner, schema, kind))

    def settings_of(self, role_id: int, *, in_database: bool) -> Mapping[str, str]:
        same = (s.values for s in self.settings if (s.role, s.in_database) == (role_id, in_database))
        return next(same, {})

    # -- changes --------------------------------------------------------------------------------------------------

    def with_role(self, role: Role) -> AccessRules:
        """With ``role`` added, or in place of the one with its id."""
        others = {name: r for name, r in self.roles.items() if r.id != role.id}
        return replace(self, roles={**others, role.name: role}, next_id=max(self.next_id, role.id + 1))

    def without_role(self, role: Role) -> AccessRules:
        """Requires: it owns and holds nothing but memberships and settings."""
        return replace(
            self,
            roles={name: r for name, r in self.roles.items() if r.id != role.id},
            memberships=tuple(m for m in self.memberships if role.id not in (m.role, m.member)),
            settings=tuple(s for s in self.settings if s.role != role.id),
        )

    def with_owner(self, key: str, role_id: int) -> AccessRules:
        """What the old owner has granted counts as the new one's."""
        old, grants = self.owner(key), self.grants
        for held in (k for k in self.grants if _whole(k) == key):
            moved = (replace(g, grantor=role_id) if g.grantor == old else g for g in grants[held])
            grants = {**grants, held: tuple(g for g in moved if g.grantee != role_id)}
        owners = {k: o for k, o in self.owners.items() if k != key}
        grants = {k: g for k, g in grants.items() if g or column_of(k) is None}
        return replace(self, owners=owners if role_id == BOOTSTRAP else {**owners, key: role_id}, grants=grants)

    def with_grants(self, key: str, grants: tuple[Grant, ...]) -> AccessRules:
        if not grants and column_of(key) is not None:
            return replace(self, grants={k: g for k, g in self.grants.items() if k != key})
        return replace(self, grants={**self.grants, key: grants})

    def without_keys(self, keys: Iterable[str]) -> AccessRules:
        """Without what is known of objects that are no more."""
        gone = frozenset(keys)
        defaults = tuple(d for d in self.defaults if d.schema is None or schema_key(d.schema) not in gone)
        untouched = gone.isdisjoint(self.owners) and gone.isdisjoint(map(_whole, self.grants))
        if untouched and len(defaults) == len(self.defaults):
            return self
        return replace(
            self,
            defaults=defaults,
            owners={k: o for k, o in self.owners.items() if k not in gone},
            grants={k: g for k, g in self.grants.items() if _whole(k) not in gone},
        )

    def with_defaults(self, changed: DefaultGrants) -> AccessRules:
        """With those in place of what was said of the same objects."""
        old = self.default_grants(changed.owner, changed.schema, changed.kind)
        if old == changed:
            return self
        kept = (*(d for d in self.defaults if d != old), *([changed] if changed.grants else []))
        return replace(self, defaults=kept)

    def without_defaults_of(self, role_id: int) -> AccessRules:
        """Without what is granted by default of that role's objects, or to it."""
        rules = replace(self, defaults=tuple(d for d in self.defaults if d.owner != role_id))
        for found in rules.defaults:
            kept = tuple(g for g in found.grants if g.grantee != role_id)
            rules = rules.with_defaults(replace(found, grants=kept))
        return self if rules.defaults == self.defaults else rules

    def made(self, key: str, role_id: int, kind: str, schema: str | None) -> AccessRules:
        """With an object that the role has made, in ``schema``, and what it grants of it by default."""
        rules = self
        if role_id != BOOTSTRAP or self.owner(key) != BOOTSTRAP:
            rules = rules.with_owner(key, role_id)
        for where in (None,) if schema is None else (None, schema):
            for grant in rules.default_grants(role_id, where, kind).grants:
                if grant.grantee != role_id:  # who has all rights
                    rules = rules.granting(key, grant)
        return rules

    def with_settings(self, changed: RoleSettings) -> AccessRules:
        """With those in place of what there was for the same sessions."""
        of = changed.role, changed.in_database
        kept = tuple(s for s in self.settings if (s.role, s.in_database) != of)
        return replace(self, settings=(*kept, changed) if changed.values else kept)

    def granting(self, key: str, wanted: Grant) -> AccessRules:
        """With that grant; a grant option that there is stays.  0LP01 if the grantor has its own from the grantee."""
        if wanted.grantable and wanted.grantor != self.owner(key):
            self._check_no_circle(key, wanted)
        old = next((g for g in self.granted(key) if _same(g, wanted)), None)
        new = wanted if old is None else replace(wanted, grantable=wanted.grantable or old.grantable)
        rest = tuple(g for g in self.granted(key) if g is not old)
        return self.with_grants(key, (*rest, new))

    def _check_no_circle(self, key: str, wanted: Grant) -> None:
        without = self
        for g in self.granted(key):
            if g.grantee == wanted.grantee and g.right == wanted.right and g.grantable:
                without = without.revoking(key, g, option_only=True, cascade=True)
        selves = self.acts_as(self.named(wanted.grantor))
        left = without.granted(key)
        if not any(g.grantee in selves and g.right == wanted.right and g.grantable for g in left):
            raise make_error("0LP01", "grant options cannot be granted back to your own grantor")

    def revoking(self, key: str, gone: Grant, *, option_only: bool, cascade: bool) -> AccessRules:
        """Without that grant (or its grant option).  2BP01 if others hang on it, unless they go too."""
        old = next((g for g in self.granted(key) if _same(g, gone)), None)
        if old is None:
            return self
        rest = tuple(g for g in self.granted(key) if g is not old)
        rules = self.with_grants(key, (*rest, replace(old, grantable=False)) if option_only else rest)
        still = any(g.grantee == old.grantee and g.right == old.right and g.grantable for g in rules.granted(key))
        if still or self.owner(key) == old.grantee:
            return rules
        for dependent in [g for g in rest if g.grantor == old.grantee and g.right == old.right]:
            if not cascade:
                raise make_error("2BP01", "dependent privileges exist", hint="Use CASCADE to revoke them too.")
            rules = rules.revoking(key, dependent, option_only=False, cascade=True)
        return rules

    def acl(self, key: str, kind: str) -> list[str] | None:
        """The items of ``relacl`` and its like; None where nothing was granted or revoked."""
        if key not in self.grants:
            return None
        return self._acl_items(kind, self.owner(key), self.grants[key], of_owner=kind != "column")

    def default_acl(self, defaults: DefaultGrants) -> list[str]:
        """The items of ``defaclacl``: what is granted in a schema comes on top of what is granted anywhere."""
        return self._acl_items(defaults.kind, defaults.owner, defaults.grants, of_owner=defaults.schema is None)

    def _acl_items(self, kind: str, owner: int, grants: Iterable[Grant], *, of_owner: bool) -> list[str]:
        letters, names = ALL_RIGHTS[kind], {r.id: r.name for r in self.roles.values()} | {PUBLIC: ""}
        found: dict[tuple[int, int], dict[str, bool]] = {}
        if of_owner:
            found[owner, owner] = dict.fromkeys(letters, False)
        for g in grants:
            found.setdefault((g.grantee, g.grantor), {})[g.right] = g.grantable
        parts = []
        for (who, by), rights in found.items():
            shown = "".join(letter + "*" * rights[r] for r, letter in letters.items() if r in rights)
            parts.append(f"{names[who]}={shown}/{names[by]}")
        return parts


def _whole(key: str) -> str:
    """Of what the key is, or the table of which it is a column."""
    column = column_of(key)
    return key if column is None else column[0]


def _same(a: Grant, b: Grant) -> bool:
    return (a.grantee, a.right, a.grantor) == (b.grantee, b.right, b.grantor)
