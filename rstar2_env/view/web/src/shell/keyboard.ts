/* Keyboard shortcuts: single keys, inactive during typing, each with a label for the help. */
import { useLayoutEffect } from "preact/hooks";

export interface Shortcut {
  keys: string[];
  /** Description for the list of shortcuts. */
  label: string;
  run: () => void;
}

const active = new Set<Shortcut[]>();

/** All shortcuts of the current page. */
export function shortcuts(): Shortcut[] {
  return [...active].flat();
}

/** Activate shortcuts while the component is mounted. */
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
