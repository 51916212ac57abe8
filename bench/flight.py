"""A hundred readers of an entry that has just expired, with a load of 50 ms: loads with and without single flight."""
from common import program


def measure():
    return program("flight_bench")
