/* A link that looks like a button; without an address it is a disabled button. */
import type { ComponentChildren } from "preact";

export function LinkButton({ to, children }: { to: string | null; children: ComponentChildren }) {
  if (to === null) {
    return (
      <button type="button" class="button" disabled>
        {children}
      </button>
    );
  }
  return (
    <a class="button" href={to}>
      {children}
    </a>
  );
}
