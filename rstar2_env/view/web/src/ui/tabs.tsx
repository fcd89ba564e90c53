/* Links to the parts of a page; the part is in the address. */
export interface Tab {
  label: string;
  to: string;
  /** Number next to the label. */
  count?: string;
  current: boolean;
}

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
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
