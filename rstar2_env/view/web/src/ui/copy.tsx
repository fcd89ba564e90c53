/* A button that copies a text, and says that it did. */
import { useEffect, useState } from "preact/hooks";

export function Copy({ text, what, label = "Copy" }: { text: string | (() => string); what: string; label?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 1600);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => setSaid((await copied(typeof text === "string" ? text : text())) ? "Copied" : "Not allowed");
  return (
    <button type="button" class="button small ghost" onClick={() => void copy()} aria-label={`${label} ${what}`}>
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}

/** Puts a text on the clipboard; a page that is not secure (http to another host) has only the old way. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "off-screen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
