/** Makes an engine's methods fail with the domain's errors. */

type Method<Values extends unknown[], Result> = (...values: Values) => Promise<Result>;

export function createErrorMapper(mapError: (error: unknown) => unknown) {
  return function mapErrors<Values extends unknown[], Result>(
    method: Method<Values, Result>,
  ): Method<Values, Result> {
    return async (...values) => {
      try {
        return await method(...values);
      } catch (error) {
        throw mapError(error);
      }
    };
  };
}
