/* Types shared by all pages. */

export interface PageProps {
  /** Values of the placeholders in the address pattern. */
  values: Record<string, string>;
  query: Record<string, string>;
}
