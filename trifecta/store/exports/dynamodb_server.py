"""Tables of DynamoDB: where they are and who asks, made on demand, read, and written with the patience it asks for."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import urlsplit

from trifecta.design.errors import CannotError, TrifectaError, UserError
from trifecta.design.extras import LazyModule
from trifecta.store.exports import error_messages

boto3: Any = LazyModule("boto3")
configuration: Any = LazyModule("botocore.config")
exceptions: Any = LazyModule("botocore.exceptions")

BATCH = 25
"""Requests that BatchWriteItem takes at once."""
KEYS = ("part", "row")
"""Of every table: text by which its items are spread, and a number by which they are in order."""
_REGION = re.compile(r"[a-z0-9-]+")
_PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,200}")
# What DynamoDB leaves over of a batch is sent again as its guide says, with pauses that double, for about a minute. It
# says so in its answer, or by these errors where it took nothing at all.
_PAUSES_S = tuple(0.05 * 2**n for n in range(10))
_PATIENCE = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")
_LOOK_S, _MADE_S = 0.5, 120.0  # between two looks whether a table is made, and at most
_CONNECT_S, _ANSWER_S = 10, 60
_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or correct ~/.aws/credentials"
_ALLOW = "the user needs DescribeTable, CreateTable, GetItem, Query and BatchWriteItem of these tables"
_REMEDIES = {
    "UnrecognizedClientException": _CREDENTIALS,
    "InvalidSignatureException": _CREDENTIALS,
    "IncompleteSignatureException": _CREDENTIALS,
    "MissingAuthenticationTokenException": _CREDENTIALS,
    "ExpiredTokenException": _CREDENTIALS,
    "AccessDeniedException": _ALLOW,
}
Item = dict[str, "Attribute"]
Request = dict[str, dict[str, Item]]
"""To write or to delete an item, as BatchWriteItem has it."""


class Attribute(TypedDict, total=False):
    """A value as DynamoDB has it: text, a number written out, a boolean, or several by name."""

    S: str
    N: str
    BOOL: bool
    M: dict[str, Attribute]


class Described(TypedDict):
    """Of what DynamoDB says of a table what is asked here."""

    KeySchema: list[dict[str, str]]
    TableStatus: str


@dataclass(frozen=True)
class Place:
    """The tables of a prefix."""

    client: Any
    """Of boto3; it tries nothing twice."""
    where: str
    """What to call the place."""
    prefix: str

    def name(self, table: str) -> str:
        """What a table is called there."""
        return f"{self.prefix}-{table}"

    def described(self, table: str) -> Described | None:
        """What DynamoDB says of a table; None where it is not there."""
        try:
            description: Described = self.client.describe_table(TableName=self.name(table))["Table"]
        except self.client.exceptions.ResourceNotFoundException:
            return None
        return description

    def make(self, names: list[str]) -> set[str]:
        """Make the tables that are missing; which these are. CannotError for one that has other keys."""
        created, awaited = set(), []
        for name in names:
            description = self.described(name)
            if description is None:
                self._create(name)
                created.add(name)
            elif [each["AttributeName"] for each in description["KeySchema"]] != [*KEYS]:
                raise CannotError(
                    f"{self.where}: {self.name(name)} has other keys than part and row; choose another prefix"
                )
            if description is None or description["TableStatus"] == "CREATING":
                awaited.append(name)
        end = time.monotonic() + _MADE_S
        for name in awaited:
            while (now := self.described(name)) is None or now["TableStatus"] != "ACTIVE":
                if time.monotonic() > end:
                    raise CannotError(
                        f"{self.where}: {self.name(name)} is not made in {_MADE_S:.0f} s; {error_messages.RUN_AGAIN}"
                    )
                time.sleep(_LOOK_S)
        return created

    def _create(self, table: str) -> None:
        part, row = KEYS
        self.client.create_table(
            TableName=self.name(table),
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": part, "AttributeType": "S"},
                {"AttributeName": row, "AttributeType": "N"},
            ],
            KeySchema=[{"AttributeName": part, "KeyType": "HASH"}, {"AttributeName": row, "KeyType": "RANGE"}],
        )

    def item(self, table: str, part: str, row: int) -> Item:
        """An item as it is now; empty where it is not there."""
        response = self.client.get_item(TableName=self.name(table), Key=key(part, row), ConsistentRead=True)
        stored: Item = response.get("Item", {})
        return stored

    def items(self, table: str, part: str) -> Iterator[Item]:
        """The items of a part as they are now, in the order of their rows."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.name(table),
            KeyConditionExpression="#part = :part",
            ExpressionAttributeNames={"#part": KEYS[0]},
            ExpressionAttributeValues={":part": {"S": part}},
            ConsistentRead=True,
        )
        for page in pages:
            yield from page["Items"]

    def write(self, table: str, batch: list[Request]) -> None:
        """All requests of a batch; CannotError where DynamoDB still leaves some over after the last pause."""
        left = {self.name(table): batch}
        for pause in (*_PAUSES_S, None):
            left = self._left(left)
            if not left:
                return
            if pause is not None:
                time.sleep(pause)
        raise CannotError(f"{self.where}: {self.name(table)} is asked for more than it lets through, for "
                          f"{sum(_PAUSES_S):.0f} s with growing pauses; {error_messages.RUN_AGAIN}")  # fmt: skip

    def _left(self, batch: dict[str, list[Request]]) -> dict[str, list[Request]]:
        """What DynamoDB leaves over of a batch."""
        try:
            left: dict[str, list[Request]] = self.client.batch_write_item(RequestItems=batch)["UnprocessedItems"]
        except exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in _PATIENCE:
                raise
            return batch
        return left


def key(part: str, row: int) -> Item:
    """The key of an item."""
    return {KEYS[0]: {"S": part}, KEYS[1]: {"N": str(row)}}


@contextmanager
def opened(url: str) -> Iterator[Place]:
    """The place of a URL. UserError where it names none; CannotError, in one line, for whatever fails in the block."""
    region, prefix = _parted(url)
    where = error_messages.place(url)
    secrets: list[str] = []
    try:
        yield Place(_client(region, where, secrets), where, prefix)
    except TrifectaError:
        raise
    except (exceptions.ClientError, exceptions.BotoCoreError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, exceptions.ClientError) else ""
        raise CannotError(
            f"{where}: {error_messages.line(error, *secrets)}; {_REMEDIES.get(code, error_messages.RUN_AGAIN)}"
        ) from None


def _parted(url: str) -> tuple[str, str]:
    """Region and prefix."""
    parted = urlsplit(url)
    prefix = parted.path.removeprefix("/").removesuffix("/")
    if parted.query or parted.fragment or not _REGION.fullmatch(parted.netloc) or not _PREFIX.fullmatch(prefix):
        raise UserError("--to dynamodb://: the URL has the form dynamodb://REGION/PREFIX, a prefix of letters, digits "
                        "and _.-; credentials are looked for where `trifecta export --help` says")  # fmt: skip
    return parted.netloc, prefix


def _client(region: str, where: str, secrets: list[str]) -> Any:
    """Who asks, by boto3's own ways. What of it is secret is added to the list."""
    session = boto3.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise CannotError(f"{where}: no credentials are found; {_CREDENTIALS}")
    secrets += [text for text in credentials.get_frozen_credentials() if text]
    config = configuration.Config(
        retries={"total_max_attempts": 1},
        connect_timeout=_CONNECT_S,
        read_timeout=_ANSWER_S,
        parameter_validation=False,  # the server's own, which is not bound to what boto3 knew of it
    )
    try:
        client = session.client("dynamodb", region_name=region, config=config)
    except ValueError:
        raise UserError("AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL is no URL: it is https://HOST:PORT") from None
    secrets.append(urlsplit(client.meta.endpoint_url).password or "")
    return client
