"""What the kernel's files of counters say: /proc/net/snmp, netstat, snmp6, dev, softnet_stat, stat/nf_conntrack."""

from __future__ import annotations


def parse_counters(text: str) -> dict[str, dict[str, int]]:
    """The pairs of lines of /proc/net/snmp: names, then values, each with the protocol first."""
    counters: dict[str, dict[str, int]] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, _, name_list = names.partition(":")
        other, _, value_list = values.partition(":")
        if protocol == other:
            counters[protocol] = {
                name: int(value)
                for name, value in zip(name_list.split(), value_list.split(), strict=False)
                if value.lstrip("-").isdigit()
            }
    return counters


def parse_pairs(text: str) -> dict[str, int]:
    """The lines of /proc/net/snmp6: a name and a number each."""
    pairs = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[1].isdigit():
            pairs[fields[0]] = int(fields[1])
    return pairs


def parse_devices(text: str) -> dict[str, dict[str, int]]:
    """Octets, packets, errors and drops of each device in /proc/net/dev."""
    devices = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = [int(number) for number in numbers.split()]
        if len(fields) >= 12:
            devices[name.strip()] = {
                "rx_bytes": fields[0], "rx_packets": fields[1], "rx_errors": fields[2], "rx_drops": fields[3],
                "tx_bytes": fields[8], "tx_packets": fields[9], "tx_errors": fields[10], "tx_drops": fields[11],
            }  # fmt: skip
    return devices


def parse_softnet_drops(text: str) -> int:
    """Packets that the backlog queues of all CPUs refused (second column of /proc/net/softnet_stat)."""
    return sum(int(line.split()[1], 16) for line in text.splitlines() if line.strip())


def parse_conntrack(text: str) -> dict[str, int]:
    """The counters of /proc/net/stat/nf_conntrack, summed over CPUs; ``entries`` is the same number in every row."""
    names, *rows = [line.split() for line in text.splitlines() if line.strip()] or [[]]
    counters: dict[str, int] = {}
    for row in rows:
        for name, value in zip(names, row, strict=False):
            number = int(value, 16)
            counters[name] = number if name == "entries" else counters.get(name, 0) + number
    return counters
