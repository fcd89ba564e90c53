/* The list of keyboard shortcuts of the current page. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Shortcut, shortcuts } from "./keyboard";

let open: () => void = () => undefined;

export function openHelp(): void {
  open();
}

const NAMES: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [list, setList] = useState<Shortcut[]>([]);
  useEffect(() => {
    open = () => {
      setList(shortcuts());
      dialog.current?.showModal();
    };
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title">
      <form method="dialog">
        <h2 id="help-title">Keyboard</h2>
        <dl>
          {list.map((shortcut) => (
            <div key={shortcut.label}>
              <dt>
                {shortcut.keys.map((key) => (
                  <kbd key={key}>{NAMES[key] ?? key}</kbd>
                ))}
              </dt>
              <dd>{shortcut.label}</dd>
            </div>
          ))}
          <div>
            <dt>
              <kbd>↑</kbd>
              <kbd>↓</kbd>
              <kbd>Enter</kbd>
            </dt>
            <dd>In a table: select a row, open it</dd>
          </div>
        </dl>
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </dialog>
  );
}
