#!/usr/bin/env python3
"""For tests that start a broker as their own child, so that it ends with them: all but the starting.

usage: alone.py prepare FOLDER [BROKERS]   fetches and writes what is needed; prints each broker's command, a word a line, then an empty line
       alone.py wait FOLDER                returns when the brokers that the caller has started can be used
Exit codes as of scripts/services: 3 if the jars couldn't be fetched because the registry can't be reached.
"""
import pathlib
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from servers.kafka import Kafka  # noqa: E402
from servers.service import Failure  # noqa: E402


def main(command, folder, brokers="1"):
    kafka = Kafka(folder, types.SimpleNamespace(brokers=int(brokers)))
    try:
        if command == "prepare":
            kafka.install()
            kafka.fetch()
            kafka.set_up()
            for words in kafka.commands().values():
                print("\n".join(words), end="\n\n")
            print(" ".join(str(port) for port in kafka.settings["ports"]))
        else:
            kafka.wait()
    except Failure as why:
        print(why, file=sys.stderr)
        return why.code
    return 0


sys.exit(main(*sys.argv[1:]))
