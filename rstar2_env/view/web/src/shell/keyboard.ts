/* Shortcuts: single keys, never while the reader types, each with its words for the help. */
import { useLayoutEffect } from "preact/hooks";

export interface Shortcut {
  keys: string[];
  /** What it does, for the list of shortcuts. */
  label: string;
  run: () => void;
}

const active = new Set<Shortcut[]>();

/** The shortcuts of everything that is on the page. */
export function shortcuts(): Shortcut[] {
  return [...active].flat();
}

/** Makes shortcuts work while the component is on the page, from the moment at which it shows what they lead to. */
export function useShortcuts(list: Shortcut[]): void {
  useLayoutEffect(() => {
    active.add(list);
    return () => void active.delete(list);
  });
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const found = shortcuts().find((shortcut) => shortcut.keys.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found.run();
});

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable)
  );
}
