/* Light, dark, or what the system prefers; kept in the browser where it allows that. */
import { useEffect, useState } from "preact/hooks";

export type Choice = "system" | "light" | "dark";

const KEY = "rstar2-view-theme";
const listeners = new Set<() => void>();
const dark = matchMedia("(prefers-color-scheme: dark)");
let choice = stored();

/** Puts the theme on the page; pictures that are drawn with its colours are told. */
export function applyTheme(): void {
  document.documentElement.dataset["theme"] = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
  for (const listener of listeners) listener();
}

dark.addEventListener("change", applyTheme);

export function chooseTheme(next: Choice): void {
  choice = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A page opened from a file may have no storage: the choice holds until it is closed.
  }
  applyTheme();
}

/** The choice, and `light` or `dark` as it is shown; renders again when either changes. */
export function useTheme(): { choice: Choice; shown: string } {
  const read = () => ({ choice, shown: document.documentElement.dataset["theme"] ?? "light" });
  const [state, setState] = useState(read);
  useEffect(() => {
    const told = () => setState(read());
    listeners.add(told);
    return () => void listeners.delete(told);
  }, []);
  return state;
}

function stored(): Choice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}
