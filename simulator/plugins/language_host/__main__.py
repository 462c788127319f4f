"""The plugin process `pulumi-language-python`. The engine's address is the last argument."""

from __future__ import annotations

import sys

from simulator.plugins.language_host.host import LanguageHost
from simulator.plugins.protocol import language_pb2_grpc
from simulator.plugins.serving import serve


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.exit("pulumi-language-python is a plugin of the pulumi CLI, which starts it with the engine's address.")
    host = LanguageHost(engine_address=arguments[-1])
    serve(host, language_pb2_grpc.add_LanguageRuntimeServicer_to_server, ended=host.stop)


main(sys.argv[1:])
