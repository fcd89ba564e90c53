"""The programs in tools/ are not a package: their folder is put on the path."""

import sys

from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))
