/* A button that copies a text and confirms it. */
import { useEffect, useState } from "preact/hooks";

export function Copy({ text, what, label = "Copy" }: { text: string | (() => string); what: string; label?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 1600);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => setSaid((await copied(typeof text === "string" ? text : text())) ? "Copied" : "Could not copy");
  return (
    <button type="button" class="button small ghost" onClick={() => void copy()} aria-label={`${label} ${what}`}>
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}

/** Copy a text to the clipboard; insecure pages (http to another host) need the legacy method. */
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
