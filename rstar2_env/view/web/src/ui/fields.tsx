/* Labelled inputs of filters and tool bars. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface Option {
  value: string;
  label: string;
  disabled?: boolean;
}

export function Choose({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: Option[];
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.disabled ?? false}>
            {option.label}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Text field that reports its value after a pause in typing, on Enter, and on blur. */
export function TextField({
  label,
  value,
  onChange,
  type = "text",
  placeholder,
  wide,
  inputRef,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  type?: "text" | "search" | "number";
  placeholder?: string;
  wide?: boolean;
  inputRef?: { current: HTMLInputElement | null };
}) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const tell = (next: string) => {
    clearTimeout(timer.current);
    if (next !== value) onChange(next);
  };
  return (
    <div class={`field${wide ? " wide" : ""}`}>
      <label for={id}>{label}</label>
      <input
        id={id}
        ref={inputRef ?? null}
        type={(type === "search" ? "search" : "text") as "text"}
        {...(type === "number" ? { inputMode: "decimal" as const } : {})}
        value={typed}
        placeholder={placeholder ?? ""}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => {
          const next = event.currentTarget.value;
          setTyped(next);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => tell(next), 250);
        }}
        onKeyDown={(event) => event.key === "Enter" && tell(event.currentTarget.value)}
      />
    </div>
  );
}

export function Switch({
  label,
  on,
  onChange,
}: {
  label: ComponentChildren;
  on: boolean;
  onChange: (on: boolean) => void;
}) {
  return (
    <label class="switch">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}
