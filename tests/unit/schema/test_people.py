"""Linked tables: what links may say, the TOML file of several tables, and the one form that all else uses."""

from __future__ import annotations

import json

import pytest

import spinney as sp
from spinney.errors import SchemaError
from spinney.schema.linked import PeopleShape
from support.in_one_test import in_one_test

CUSTOMERS = sp.Schema({"id": sp.Identifier(prefix="C-"), "region": sp.Category(["west", "east"]), "seen": sp.Ignore()})
ORDERS = sp.Schema(
    {
        "customer": sp.Identifier(),
        "day": sp.Date("2020-01-01", "2020-12-31"),
        "kind": sp.Category(["food", "fuel"]),
        "amount": sp.Real(0, 100),
    },
    rules=[sp.NeverAfter("kind", ["fuel"])],
)
VISITS = sp.Schema({"who": sp.Identifier(), "minutes": sp.Integer(0, 600)})
LINK = sp.Link("orders.customer", "customers.id", most=200, order="day")


def shop(links=(LINK,), **schemas):
    return sp.Tables({"customers": CUSTOMERS, "orders": ORDERS} | schemas, links=links)


def flat(**options):
    return sp.Schema(dict(ORDERS), **({"person": "customer", "most_rows": 7} | options))


# -------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    "link",
    [
        sp.Link("orders.customer", "customers.id", most=1),
        sp.Link("a.b.c", "d.e", most=65_535, order="x", steps=True, role="y", differences=["z", "w"]),
    ],
    ids=["plain", "full"],
)
def test_links_survive_being_written(link):
    """A link is what its repr and its plain data say; a dot in a column's name stays there."""
    assert eval(repr(link), {"Link": sp.Link}) == link
    assert hash(eval(repr(link), {"Link": sp.Link})) == hash(link)
    assert link != sp.Link("orders.customer", "customers.id", most=2)


def test_tables_survive_plain_data_and_json():
    """Plain data give the same tables again, with and without a detour over JSON."""
    tables = shop()
    assert sp.Tables.from_dict(tables.to_dict()) == tables
    described = json.loads(json.dumps(tables.to_dict(), default=lambda day: day.isoformat()))
    assert sp.Tables.from_dict(described) == tables
    assert tables != shop([sp.Link("orders.customer", "customers.id", most=100, order="day")])


def test_several_tables_may_belong_to_the_same_persons():
    """Two links into one table of persons are two tables of rows."""
    tables = shop([LINK, sp.Link("visits.who", "customers.id", most=9)], visits=VISITS)
    assert [rows.name for rows in PeopleShape.of(tables).rows] == ["orders", "visits"]


A_IDS = sp.Schema({"id": sp.Identifier(), "of": sp.Identifier(), "x": sp.Boolean()})


@in_one_test(
    ("make", "said"),
    [
        (lambda: sp.Link("orders", "customers.id", most=1), "child='orders' is not a table, a dot and its column"),
        (lambda: sp.Link("orders.customer", 7, most=1), "parent=7 is not a table and its column"),
        (lambda: shop([sp.Link("orders.customer", "customers.id")]), "most is missing; .* such as most=200"),
        (
            lambda: shop([sp.Link("orders.customer", "customers.id", most=0)]),
            "most=0 is not a whole number",
        ),
        (lambda: shop([sp.Link("order.customer", "customers.id", most=9)]), "no table 'order'; did you mean 'orders'"),
        (
            lambda: shop([sp.Link("orders.custmer", "customers.id", most=9)]),
            "table 'orders' has no column 'custmer'; did you mean 'customer'",
        ),
        (
            lambda: shop([sp.Link("orders.kind", "customers.id", most=9)]),
            "column 'kind' of table 'orders' is of type category; declare keys as sp.Identifier",
        ),
        (
            lambda: shop([sp.Link("orders.customer", "customers.region", most=9)]),
            "column 'region' of table 'customers' is of type category",
        ),
        (
            lambda: shop([sp.Link("orders.customer", "customers.id", most=9, order="kind")]),
            r"Link\('orders.customer', 'customers.id'\): order='kind' is of type category, whose values have no order",
        ),
        (
            lambda: shop([sp.Link("orders.customer", "customers.id", most=9)]),
            r"NeverAfter\('kind', \['fuel'\]\) needs order=",
        ),
        (
            lambda: shop([sp.Link("customers.id", "orders.customer", most=9, order="day")]),
            "column 'day' is not in 'customers' but in 'orders'; .*swap child and parent",
        ),
        (lambda: shop([]), "Tables has no links"),
        (lambda: shop(LINK), "is not a list of links"),
        (lambda: shop(["orders"]), "'orders' is not a link"),
        (lambda: shop(visits=VISITS), "table 'visits' is not linked to 'customers'"),
        (lambda: shop([LINK, LINK]), "table 'orders' has two owners"),
        (
            lambda: sp.Tables(
                {"a": A_IDS, "b": A_IDS, "c": A_IDS},
                links=[sp.Link("a.of", "b.id", most=9), sp.Link("b.of", "c.id", most=9)],
            ),
            "table 'b' is itself linked to 'c', and chains of tables are not supported",
        ),
        (
            lambda: sp.Tables(
                {"a": A_IDS, "b": A_IDS}, links=[sp.Link("a.of", "b.id", most=9), sp.Link("b.of", "a.id", most=9)]
            ),
            "links go in a circle: 'a', 'b' and 'a'",
        ),
        (
            lambda: sp.Tables({"a": A_IDS}, links=[sp.Link("a.of", "a.id", most=9)]),
            "the table is linked to itself",
        ),
        (
            lambda: sp.Tables(
                {"a": A_IDS, "b": A_IDS, "c": A_IDS, "d": A_IDS},
                links=[sp.Link("a.of", "b.id", most=9), sp.Link("c.of", "d.id", most=9)],
            ),
            "there are two tables of persons, 'b' and 'd'",
        ),
        (
            lambda: sp.Tables(
                {"a": A_IDS, "b": A_IDS, "c": A_IDS},
                links=[sp.Link("a.of", "b.id", most=9), sp.Link("c.of", "b.of", most=9)],
            ),
            "'b' has two keys, 'id' and 'of'",
        ),
        (lambda: shop(orders=flat(order="day")), "table 'orders': its schema states person='customer'"),
        (
            lambda: shop(customers=sp.Schema(dict(CUSTOMERS), rules=[sp.First("region", ["west"])])),
            r"table 'customers': First\('region', \['west'\]\) is about several rows of a person",
        ),
        (lambda: sp.Tables({"a.b": A_IDS}, links=[LINK]), "table name 'a.b' is not a non-empty string without a dot"),
        (lambda: sp.Tables({"a": 7}, links=[LINK]), "table 'a': schema is a int, not a Schema"),
        (lambda: sp.Tables(CUSTOMERS, links=[LINK]), "Tables takes a mapping"),
    ],
)
def test_links_that_cannot_be_are_refused(make, said):
    """Each fault is told with the tables and columns that it is about, and what to state instead."""
    with pytest.raises(SchemaError, match=said):
        make()


# --------------------------------------------------------------------------------------------------------- files

FILE = """
[tables.customers]
schema = "customers.toml"
file = "customers.parquet"
[tables.orders]
schema = "orders.toml"
file = "orders/*.parquet"
[[links]]
child = "orders.customer"
parent = "customers.id"
most = 200
order = "day"
"""


@pytest.fixture
def folder(tmp_path):
    CUSTOMERS.to_file(tmp_path / "customers.toml")
    ORDERS.to_file(tmp_path / "orders.toml")
    return tmp_path


def test_a_file_of_tables_names_schemas_and_data(folder):
    """Paths start in the folder of the file."""
    (folder / "shop.toml").write_text(FILE)
    tables = sp.Tables.from_file(folder / "shop.toml")
    assert tables.files == {
        "customers": str(folder / "customers.parquet"),
        "orders": str(folder / "orders/*.parquet"),
    }
    assert (dict(tables), tables.links) == (dict(shop()), shop().links)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('schema = "orders.toml"', "", "table 'orders': the entry needs a schema"),
        ('schema = "orders.toml"', 'schema = "oders.toml"', "table 'orders': cannot read the schema"),
        ('schema = "orders.toml"', 'shema = "x"\nschema = "orders.toml"', "'shema' is not an entry of a table"),
        ('file = "customers.parquet"', "file = 7", "table 'customers': file=7 is not a path"),
        ("most = 200", "mots = 200", "link 1: 'mots' is not an option of a link; .* did you mean 'most'"),
        ("most = 200", "", "most is missing"),
        ('parent = "customers.id"', "", "link 1: parent is missing"),
        ("[[links]]", "[links]", "links is not a list of tables"),
        ("[[links]]", "[[lniks]]", "no entry 'lniks'; .* did you mean 'links'"),
    ],
)
def test_faults_of_a_file_of_tables_are_told(folder, old, new, said):
    """The error says which table or link is meant."""
    (folder / "shop.toml").write_text(FILE.replace(old, new))
    with pytest.raises(SchemaError, match=said):
        sp.Tables.from_file(folder / "shop.toml")


def test_plain_data_name_no_files_of_schemas():
    """Plain data may come from anywhere, so a path in place of a schema is refused."""
    described = shop().to_dict()
    described["tables"]["orders"]["schema"] = "/etc/passwd"
    with pytest.raises(SchemaError, match="table 'orders': schema names a file"):
        sp.Tables.from_dict(described)


# ------------------------------------------------------------------------------------------------------ one form


def test_a_flat_table_is_linked_tables_without_persons():
    """Both become the same form."""
    shape = PeopleShape.of(flat(order="day", role="kind"))
    assert (shape.persons, shape.persons_name, shape.key) == (None, None, None)
    (rows,) = shape.rows
    assert (rows.name, rows.key, rows.most, rows.order, rows.role) == ("", "customer", 7, "day", "kind")
    assert list(rows.modelled) == ["day", "kind", "amount"]
    linked = PeopleShape.of(shop())
    assert (linked.persons_name, linked.key, list(linked.tables)) == ("customers", "id", ["customers", "orders"])
    assert linked.rows[0].position_rules == (sp.NeverAfter("kind", ["fuel"]),)


@pytest.mark.parametrize(
    "stated",
    [
        flat(order="day", steps=True, role="kind", differences=["amount"]),
        shop(),
        shop([LINK, sp.Link("visits.who", "customers.id", most=9, differences=["minutes"])], visits=VISITS),
    ],
    ids=["flat", "linked", "two children"],
)
def test_the_form_survives_json(stated):
    """Cards and files hold it."""
    shape = PeopleShape.of(stated)
    assert PeopleShape.from_dict(json.loads(json.dumps(shape.to_dict()))) == shape


@pytest.mark.parametrize("described", [{}, {"rows": []}, {"rows": [{}]}, {"persons": 3, "rows": []}, None, [1]])
def test_what_is_no_shape_is_refused(described):
    """A damaged file is told as such."""
    with pytest.raises(SchemaError):
        PeopleShape.from_dict(described)


def test_synthetic_tables_lack_ignored_columns():
    """What is ignored is neither drawn nor on the card."""
    shape = PeopleShape.of(shop())
    assert "seen" in shape.persons
    assert "seen" not in shape._without_ignored().persons


PRIVATE = sp.Schema({"customer": sp.Identifier(), "x": sp.Real(bounds="private")}, person="customer", most_rows=2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ORDERS, "does not say whose rows they are"),
        (lambda: PRIVATE, "column 'x' has bounds='private'"),
        (
            lambda: shop(customers=sp.Schema({"id": sp.Identifier(), "x": sp.Category("private", other="o")})),
            "table 'customers': column 'x' has values=\"private\"",
        ),
        (
            lambda: sp.Schema(
                {"who": sp.Identifier(), "lon": sp.Real(0, 1), "lat": sp.Real(0, 1)},
                places=[sp.Place("lon", "lat")],
                person="who",
                most_rows=2,
            ),
            "the place 'lon, lat' is in a table of many rows a person",
        ),
        (
            lambda: shop(customers=sp.Schema({"id": sp.Identifier(), "#": sp.Boolean()})),
            "table 'customers': column '#' has the name of the number of rows",
        ),
        (lambda: shop(customers=sp.Schema({"id": sp.Identifier()})), "table 'customers': all columns are identifiers"),
    ],
)
def test_what_a_model_of_persons_cannot_do_is_refused(make, said):
    """The error comes before any table is opened, and says what to state instead."""
    with pytest.raises(SchemaError, match=said):
        PeopleShape.of(make())


# ------------------------------------------------------------------------------------------------- what files say

CUSTOMERS_FILE = '[columns.id]\ntype = "integer"\n[columns.age]\ntype = "integer"\nlow = 0\nhigh = 99\n'
WHOLE_FILE = CUSTOMERS_FILE.replace("integer", "identifier", 1)
ORDERS_FILE = '[columns.customer]\ntype = "identifier"\n[columns.day]\ntype = "integer"\nlow = 0\nhigh = 99\n'


@pytest.fixture
def tables_file(tmp_path):
    """Writes a file of two linked tables, whose link has these lines."""

    def write(customers=WHOLE_FILE, link="most = 9"):
        (tmp_path / "customers.toml").write_text(customers)
        (tmp_path / "orders.toml").write_text(ORDERS_FILE)
        (tmp_path / "shop.toml").write_text(
            '[tables.customers]\nschema = "customers.toml"\n[tables.orders]\nschema = "orders.toml"\n'
            f'[[links]]\nchild = "orders.customer"\nparent = "customers.id"\n{link}\n'
        )
        return tmp_path / "shop.toml"

    return write


def test_a_key_of_another_type_is_told_to_be_an_identifier(tables_file):
    """Whatever its type lacks: bounds would not help. A key that is an identifier keeps its own errors."""
    assert list(sp.Tables.from_file(tables_file())) == ["customers", "orders"]
    with pytest.raises(SchemaError, match=r"table 'customers': column 'id' says whose row it is; .*identifier") as err:
        sp.Tables.from_file(tables_file(CUSTOMERS_FILE))
    assert "private" not in str(err.value)
    misspelt = CUSTOMERS_FILE.replace('"integer"', '"identifier"\nprefx = "C-"', 1)
    with pytest.raises(SchemaError, match="table 'customers': column 'id': 'prefx' is not an option"):
        sp.Tables.from_file(tables_file(misspelt))
    with pytest.raises(SchemaError, match="table 'customers': column 'age': Integer: high is missing"):
        sp.Tables.from_file(tables_file(WHOLE_FILE.replace("high = 99", "")))


def test_a_person_column_of_another_type_is_told_to_be_an_identifier():
    """The same in a schema of one table; with bounds too, and in Python."""
    person = '[person]\ncolumn = "id"\nmost_rows = 9\n'
    with pytest.raises(SchemaError, match="column 'id' says whose row it is; write type = \"identifier\""):
        sp.Schema.from_toml(CUSTOMERS_FILE + person)
    whole = CUSTOMERS_FILE.replace('"integer"', '"integer"\nlow = 0\nhigh = 9', 1)
    with pytest.raises(SchemaError, match=r"column 'id' is of type integer; .*sp.Identifier\(\).*\"identifier\""):
        sp.Schema.from_toml(whole + person)


def test_other_names_of_the_limit_are_known(tables_file):
    """`most` in a link and `most_rows` in [person] mean the same."""
    with pytest.raises(SchemaError, match=r"link 1: 'most_rows' is not an option of a link; .*; did you mean 'most'"):
        sp.Tables.from_file(tables_file(link="most_rows = 9"))
    with pytest.raises(SchemaError, match=r"\[person\] has no entry 'most'; .*; did you mean 'most_rows'"):
        sp.Schema.from_toml(ORDERS_FILE + '[person]\ncolumn = "customer"\nmost = 9\n')


def test_a_file_of_the_other_kind_is_told(tables_file):
    """A file of tables where a schema is wanted, and the other way round."""
    path = tables_file()
    with pytest.raises(SchemaError, match=r"it describes linked tables, .*--tables FILE.*sp.Tables.from_file"):
        sp.Schema.from_file(path)
    with pytest.raises(SchemaError, match=r"it is the schema of one table, .*--schema FILE.*sp.Schema.from_file"):
        sp.Tables.from_file(path.parent / "customers.toml")
