"""Counting 100,000 read events in batches against one transaction an event, at the same durability."""
from common import program


def measure():
    return program("counting_bench")
