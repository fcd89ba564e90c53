/* Links to the parts of a page; the part is in the address. */
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Tab {
  label: string;
  to: string;
  /** Number next to the label. */
  count?: string;
  current: boolean;
}

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  const bar = useRef<HTMLElement>(null);
  const current = tabs.findIndex((tab) => tab.current);
  // A narrow page shows only a part of the bar: scroll the current tab into it.
  useLayoutEffect(() => {
    const link = bar.current?.querySelector<HTMLElement>("[aria-current]");
    if (bar.current && link) bar.current.scrollLeft = link.offsetLeft + link.offsetWidth / 2 - bar.current.clientWidth / 2;
  }, [current, tabs.length]);
  return (
    <nav class="tabs" aria-label={label} ref={bar}>
      <ul>
        {tabs.map((tab) => (
          <li key={tab.label}>
            <a href={tab.to} aria-current={tab.current ? "page" : undefined}>
              {tab.label}
              {tab.count && <span class="tab-count">{tab.count}</span>}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
