"""What tshark's fields say, read with care: versions write numbers and truths differently."""

from __future__ import annotations

from trifecta.trace.tshark import AGGREGATOR

_CIPHERS = {
    0x1301: "TLS_AES_128_GCM_SHA256",
    0x1302: "TLS_AES_256_GCM_SHA384",
    0x1303: "TLS_CHACHA20_POLY1305_SHA256",
    0x1304: "TLS_AES_128_CCM_SHA256",
    0x1305: "TLS_AES_128_CCM_8_SHA256",
    0xC02B: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    0xC02C: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    0xC02F: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    0xC030: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    0xCCA8: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    0xCCA9: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
}
_GROUPS = {23: "secp256r1", 24: "secp384r1", 25: "secp521r1", 29: "X25519", 30: "X448", 4588: "X25519MLKEM768"}
_TRUTHS = {"1": True, "True": True, "0": False, "False": False}
_MOST = (1 << 64) - 1


def texts(field: str) -> list[str]:
    """All values of a field in a packet, in their order."""
    return field.split(AGGREGATOR) if field else []


def number(text: str) -> int | None:
    """A number in decimal or hexadecimal; None where it is none that fits 64 bits."""
    try:
        value = int(text, 16) if text[:2] == "0x" else int(text)
    except ValueError:
        return None
    return value if 0 <= value <= _MOST else None


def numbers(field: str) -> list[int]:
    """All numbers of a field; empty where one of them is none, for then their order says nothing."""
    if not field:
        return []
    if AGGREGATOR not in field:
        one = number(field)
        return [] if one is None else [one]
    parsed = [number(text) for text in field.split(AGGREGATOR)]
    return [] if None in parsed else [one for one in parsed if one is not None]


def truths(field: str) -> list[bool]:
    """All truths of a field."""
    return [_TRUTHS.get(text, False) for text in texts(field)]


def cipher_name(code: int) -> str:
    """A cipher suite as IANA names it, else its number."""
    return _CIPHERS.get(code, f"0x{code:04x}")


def group_name(code: int) -> str:
    """A key exchange as IANA names it, else its number."""
    return _GROUPS.get(code, f"0x{code:04x}")


def record_overhead(tls_version: str | None, cipher: int | None) -> int | None:
    """Octets of a record's payload that are not plaintext, without padding (RFC 8446 5.2, RFC 5288, RFC 7905)."""
    if cipher is None:
        return None
    if tls_version == "1.3":
        return 9 if cipher == 0x1305 else 17
    if tls_version == "1.2":
        if cipher in (0xC02B, 0xC02C, 0xC02F, 0xC030, 0x009C, 0x009D, 0x009E, 0x009F):
            return 24
        if cipher in (0xCCA8, 0xCCA9, 0xCCAA):
            return 16
    return None
