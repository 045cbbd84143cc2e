"""The certificate by which the parts of the local store recognise each other."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cli.stack.layout import write_secret

LIFE: Final = timedelta(days=3_650)
RENEWAL: Final = timedelta(days=30)  # before the end, at the next start of the system


def ensure_certificate(folder: Path) -> tuple[Path, Path]:
    """Certificate and key of this system, both PEM; created, or renewed shortly before the end."""
    certificate, key = folder / "store-certificate.pem", folder / "store-certificate.key"
    if not (key.exists() and certificate.exists() and _is_valid(certificate)):
        _create(certificate, key)
    return certificate, key


def _is_valid(certificate: Path) -> bool:
    try:
        until = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    except ValueError:  # a full disk may have cut it off
        return False
    return until > datetime.now(UTC) + RENEWAL


def _create(certificate: Path, key: Path) -> None:
    private, name = ec.generate_private_key(ec.SECP256R1()), x509.NameAttribute(NameOID.COMMON_NAME, "zelda-store")
    subject, now = x509.Name([name]), datetime.now(UTC)
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # the clock of this machine may step back
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .sign(private, hashes.SHA256())
    )
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_secret(key, pem.decode())
    write_secret(certificate, signed.public_bytes(Encoding.PEM).decode())
