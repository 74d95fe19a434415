import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { findForeignAccesses } from "../../support/faults/storm/trace.ts"

const project = { directory: "/srv/storm/project", home: "/srv/storm/home" }

/** Lines of strace, and the foreign access in each. */
const OUTSIDE = {
  'openat(AT_FDCWD</srv/storm/project>, "../sibling/a", O_RDONLY) = 5': "openat /srv/storm/sibling/a",
  'openat(AT_FDCWD</srv/storm/project>, "link-out/a", O_RDONLY) = 5</srv/storm/sibling/a>':
    "openat /srv/storm/sibling/a",
  'mkdir("/srv/storm/new", 0777) = 0': "mkdir /srv/storm/new",
  'rename("/srv/storm/project/a", "/srv/storm/b") = 0': "rename /srv/storm/b",
  'symlink("/usr/a", "/srv/storm/b") = 0': "symlink /srv/storm/b",
  'newfstatat(7</srv/storm/outside>, "a", {st_mode=S_IFREG}, 0) = 0': "newfstatat /srv/storm/outside/a",
}

/**
 * Lines without a foreign access: files of project, home and system; a missing file, a parent folder, a socket, a path that is
 * only resolved, a link's text, an argument.
 */
const NONE = [
  'openat(AT_FDCWD</srv/storm/project>, "src/a.ts", O_RDONLY) = 5</srv/storm/project/src/a.ts>',
  'unlink("/srv/storm/home/.cache/a") = 0',
  'openat(AT_FDCWD</>, "/etc/hosts", O_RDONLY) = 5</etc/hosts>',
  'openat(AT_FDCWD</>, "/root/a", O_RDONLY) = -1 ENOENT (No such file or directory)',
  'stat("/srv/storm", {st_mode=S_IFDIR}) = 0',
  'newfstatat(9<socket:[77]>, "", {st_mode=S_IFSOCK}, AT_EMPTY_PATH) = 0',
  'openat(AT_FDCWD</>, "/srv/storm/project/link-out/a", O_RDONLY|O_PATH) = 5</srv/storm/sibling/a>',
  'symlink("/root/a", "/srv/storm/project/b") = 0',
  'execve("/usr/bin/git", ["git", "/root/a"], 0x1 /* 9 vars */) = 0',
]

test.each(Object.entries(OUTSIDE))(promised("storm.B3", "%s is an access outside"), (line, access) => {
  expect(findForeignAccesses([line, line], project)).toEqual([access])
})

test.each(NONE)(promised("storm.B3", "%s is none"), (line) => {
  expect(findForeignAccesses([line], project)).toEqual([])
})
