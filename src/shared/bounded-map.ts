/** A map that forgets its oldest entry when a new one would be too many. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  constructor(private readonly max: number) {
    super();
  }

  /** Maps keep the order of insertion, so the first entry is the oldest. */
  override set(key: Key, value: Value): this {
    if (this.size >= this.max && !this.has(key)) {
      const oldest = this.keys().next();
      if (!oldest.done) this.delete(oldest.value);
    }
    return super.set(key, value);
  }
}
