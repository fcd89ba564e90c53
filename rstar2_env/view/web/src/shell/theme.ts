/* Theme: light, dark, or the system's preference; stored in the browser if possible. */
import { useEffect, useState } from "preact/hooks";

export type Choice = "system" | "light" | "dark";

const KEY = "rstar2-view-theme";
const listeners = new Set<() => void>();
const dark = matchMedia("(prefers-color-scheme: dark)");
let choice = stored();

/** Apply the theme to the page, and notify plots, which use its colours. */
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
    // A page opened from a file may have no storage: the choice lasts until the page is closed.
  }
  applyTheme();
}

/** The choice, and the displayed theme (`light` or `dark`); rerenders when either changes. */
export function useTheme(): { choice: Choice; shown: string } {
  const read = () => ({ choice, shown: document.documentElement.dataset["theme"] ?? "light" });
  const [state, setState] = useState(read);
  useEffect(() => {
    const update = () => setState(read());
    listeners.add(update);
    return () => void listeners.delete(update);
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
