import sys
from pathlib import Path

# Where the helpers of the tools' tests are; there are no packages in tests/.
sys.path.insert(0, str(Path(__file__).parents[1] / "rstar2_env" / "tools"))
