"""The hot list over 1,000,000 articles within the window against ORDER BY score DESC LIMIT 100 in SQL."""
from common import program


def measure():
    return program("hot_list_bench")
