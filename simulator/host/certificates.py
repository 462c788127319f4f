"""Creates and stores the CA and certificates of a simulated cluster or of simulated Azure."""

from __future__ import annotations

import base64
import datetime
import functools
import ipaddress
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from simulator.host import files

_LIFETIME = datetime.timedelta(days=3650)
_NO_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "encipher_only",
    "decipher_only",
)
FRONT_PROXY = "front-proxy-client"
"""The common name of the API server's client certificate. Aggregated APIs trust the user headers of this client."""
_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")


class Authority:
    """A certificate authority in a folder: `ca.crt`, `ca.key`, and issued `<name>.crt`, `<name>.key`.

    Writes a key before its certificate, so that an incomplete pair is created again.
    """

    def __init__(self, folder: Path, common_name: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / "ca.crt").exists():
            self._make_ca(common_name)
        self._key = _load_key(folder / "ca.key")
        self._certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())

    @property
    def pem(self) -> str:
        return (self.folder / "ca.crt").read_text()

    def path(self, name: str, kind: str) -> str:
        return str(self.folder / f"{name}.{kind}")

    def issue(
        self, name: str, common_name: str, organization: str = "", hosts: Sequence[str] = (), *, server: bool = False
    ) -> None:
        """Issues `<name>.crt` and `<name>.key` unless they exist. `hosts` are DNS names or IP addresses."""
        if (self.folder / f"{name}.crt").exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organization:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(
            x509.Name(attributes), self._certificate.subject, key.public_key(), self._key.public_key()
        ).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alt_name(h) for h in hosts]), critical=False)
        _write_key(self.folder / f"{name}.key", key)
        certificate = builder.sign(self._key, hashes.SHA256())
        files.replace(self.folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def kubeconfig(self, name: str, server: str, cluster: str) -> dict[str, Any]:
        user = {
            "client-certificate-data": _base64(self.folder / f"{name}.crt"),
            "client-key-data": _base64(self.folder / f"{name}.key"),
        }
        endpoint = {"server": server, "certificate-authority-data": _base64(self.folder / "ca.crt")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": endpoint}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": name}}],
            "current-context": cluster,
        }

    def _make_ca(self, common_name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        signs = dict.fromkeys(("key_cert_sign", "crl_sign"), True) | dict.fromkeys(_NO_USES, False)
        builder = (
            _builder(subject, subject, key.public_key(), key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(**signs), critical=True)
        )
        _write_key(self.folder / "ca.key", key)
        certificate = builder.sign(key, hashes.SHA256())
        files.replace(self.folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM))


def serving_certificate(hosts: Sequence[str]) -> dict[str, bytes]:
    """Returns `tls.key`, `tls.crt` and `ca.crt` for a server with these names, signed by a new CA."""
    common_name = hosts[-1][:64]  # the limit of X.509
    with tempfile.TemporaryDirectory() as folder:
        Authority(Path(folder), common_name).issue("tls", common_name, hosts=hosts, server=True)
        return {name: Path(folder, name).read_bytes() for name in ("tls.key", "tls.crt", "ca.crt")}


def cluster_certificates(folder: Path, names: Sequence[str] = ()) -> Authority:
    """Creates a control plane's certificates, and the key that signs service account tokens.

    `names` are the API server's DNS names, which never change.
    """
    authority = Authority(folder, "simulated-aks-ca")
    authority.issue(
        "apiserver", "kube-apiserver", hosts=("127.0.0.1", "10.0.0.1", *_SERVICE_NAMES, *names), server=True
    )
    authority.issue("admin", "masterclient", "system:masters")  # the names in AKS's admin kubeconfigs
    authority.issue("controller-manager", "system:kube-controller-manager")
    authority.issue("scheduler", "system:kube-scheduler")
    authority.issue("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
    authority.issue("front-proxy", FRONT_PROXY)
    authority.issue("kubelet", "simulated-kubelet", hosts=("127.0.0.1",), server=True)
    if not (folder / "sa.key").exists():
        key = ec.generate_private_key(ec.SECP256R1())
        public_format = serialization.PublicFormat.SubjectPublicKeyInfo
        files.replace(folder / "sa.pub", key.public_key().public_bytes(serialization.Encoding.PEM, public_format))
        _write_key(folder / "sa.key", key)
    return authority


def rsa_key(path: Path) -> rsa.RSAPrivateKey:
    if not path.exists():
        _write_key(path, rsa.generate_private_key(public_exponent=65537, key_size=2048))
    key = _loaded(path.read_bytes())
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError(f"{path.name} has no RSA key")
    return key


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, issuer_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Returns a builder with both keys' identifiers, which Python 3.13 and newer require."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _alt_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    unencrypted = serialization.NoEncryption()
    files.replace(path, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted))


@functools.lru_cache
def _loaded(pem: bytes) -> PrivateKeyTypes:
    """Loads a key once, because each check of an RSA key takes 30 ms."""
    return serialization.load_pem_private_key(pem, None)


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = _loaded(path.read_bytes())
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path.name} has no elliptic curve key")
    return key


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
