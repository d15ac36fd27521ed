/** What a message of the console says, without its markup. */

export function toText(message: unknown): string {
  if (Array.isArray(message)) return message.map(toText).join("");
  const { props } = Object(message) as { props?: { children: unknown } };
  if (props) return toText(props.children);
  return String(message ?? "");
}
