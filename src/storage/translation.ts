/** Has the methods of an engine fail in the domain's words. It knows no engine's errors itself. */

type Method<Values extends unknown[], Result> = (...values: Values) => Promise<Result>;

export function createTranslated(translate: (error: unknown) => unknown) {
  return <Values extends unknown[], Result>(
    method: Method<Values, Result>,
  ): Method<Values, Result> =>
    async (...values) => {
      try {
        return await method(...values);
      } catch (error) {
        throw translate(error);
      }
    };
}
