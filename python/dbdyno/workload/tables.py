"""What the tables of a load are, read back from the server."""

from dbdyno.errors import TrialError
from dbdyno.model.printable import short
from dbdyno.servers.contract import ServerError
from dbdyno.stack.layer import Endpoint


def tables_of(endpoint: Endpoint, schema: str, engine: str) -> dict[str, str]:
    """Engine and row format of the tables of a schema; empty where there is none.

    Raises ``TrialError`` where a table has another engine than was asked for.
    """
    try:
        tables = endpoint.control.tables(schema)
    except ServerError as error:
        raise TrialError(f"the server does not report the tables' engine: {error}") from None
    for table in tables:
        if table.engine.lower() != engine.lower():
            name = short(f"{schema}.{table.name}")
            raise TrialError(f"table {name}: asked for engine {engine}, the server took {short(table.engine)}")
    return {"engine": short(tables[0].engine), "row_format": short(tables[0].row_format)} if tables else {}
