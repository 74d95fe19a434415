/** Loads at first use, and once; what failed is tried again at the next use. */
export type LoadOnce<T> = (() => Promise<T>) & {
  /** What has been loaded, without loading it. */
  loaded(): T | undefined
}

export const loadOnce = <T>(load: () => Promise<T>): LoadOnce<T> => {
  let loading: Promise<T> | undefined
  let loaded: T | undefined
  const get = (): Promise<T> => {
    loading ??= load().then(
      (value) => {
        loaded = value
        return value
      },
      (error: unknown) => {
        loading = undefined
        throw error
      },
    )
    return loading
  }
  return Object.assign(get, { loaded: () => loaded })
}
