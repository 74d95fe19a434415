export type Deferred<T> = { readonly promise: Promise<T>; readonly resolve: (value: T) => void }

/** `Promise.withResolvers`, which Node has from 22 on. */
export const createDeferred = <T>(): Deferred<T> => {
  let resolve = (_value: T): void => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
