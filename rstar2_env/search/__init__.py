"""Search for the best steps of a reasoning chain, a puzzle or an episode: a tree, two protocols, three algorithms."""

from .beam import Beam
from .depth_first import DepthFirst
from .scores import puct, uct
from .tree import Node
from .tree_search import TreeSearch
from .world import BudgetSpentError, Found, RatesStates, Search, SearchConfig, WorldModel

__all__ = [
    "Beam",
    "BudgetSpentError",
    "DepthFirst",
    "Found",
    "Node",
    "RatesStates",
    "Search",
    "SearchConfig",
    "TreeSearch",
    "WorldModel",
    "puct",
    "uct",
]
