import sys
from pathlib import Path

# The helpers beside these tests; there are no packages in tests/.
sys.path.insert(0, str(Path(__file__).parent))
