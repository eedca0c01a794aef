"""What the tables of a load are, read back from the server."""

import pymysql

from dbdyno.errors import TrialError
from dbdyno.servers import process
from dbdyno.servers.lent_database import MARK
from dbdyno.stack.layer import Endpoint


def tables_of(endpoint: Endpoint, schema: str, engine: str) -> dict[str, str]:
    """Engine and row format of the tables of a schema; empty where there is none.

    Raises ``TrialError`` where a table has another engine than was asked for.
    """
    query = "SELECT table_name, engine, row_format FROM information_schema.tables WHERE table_schema = %s "
    query += "AND table_name <> %s AND table_type = 'BASE TABLE'"  # a view has none, and the mark is nobody's data
    try:
        with process.connect(endpoint.address) as connection, connection.cursor() as cursor:
            cursor.execute(query, (schema, MARK))
            tables = cursor.fetchall()
    except pymysql.Error as error:
        raise TrialError(f"the server does not tell the tables' engine: {error}") from None
    for table, took, _ in tables:
        if str(took).lower() != engine.lower():
            raise TrialError(f"table {schema}.{table}: asked for engine {engine}, the server took {took}")
    return {"engine": str(tables[0][1]), "row_format": str(tables[0][2])} if tables else {}
