import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { findForeignAccesses } from "../support/storm/trace.ts"

const project = { directory: "/srv/storm/project", home: "/srv/storm/home" }
const foreign = (...lines: string[]): string[] => findForeignAccesses(lines, project)

describe("what strace noted of a run", () => {
  test.each([
    [
      "a file outside",
      'openat(AT_FDCWD</srv/storm/project>, "/root/.ssh/id_rsa", O_RDONLY) = 5',
      "openat /root/.ssh/id_rsa",
    ],
    ["a way up", 'openat(AT_FDCWD</srv/storm/project>, "../sibling/a", O_RDONLY) = 5', "openat /srv/storm/sibling/a"],
    [
      "a link that leads out",
      'openat(AT_FDCWD</srv/storm/project>, "link-out/a", O_RDONLY) = 5</srv/storm/sibling/a>',
      "openat /srv/storm/sibling/a",
    ],
    ["a folder that is made", 'mkdir("/srv/storm/new", 0777) = 0', "mkdir /srv/storm/new"],
    ["a file that is moved out", 'rename("/srv/storm/project/a", "/srv/storm/b") = 0', "rename /srv/storm/b"],
    ["a link that is put outside", 'symlink("/usr/a", "/srv/storm/b") = 0', "symlink /srv/storm/b"],
    [
      "a look at a file",
      'newfstatat(7</srv/storm/outside>, "a", {st_mode=S_IFREG}, 0) = 0',
      "newfstatat /srv/storm/outside/a",
    ],
  ])(promised("storm.B3", "%s is an access outside"), (_what, line, expected) => {
    expect(foreign(line, line)).toEqual([expected])
  })

  test.each([
    [
      "a file of the project",
      'openat(AT_FDCWD</srv/storm/project>, "src/a.ts", O_RDONLY) = 5</srv/storm/project/src/a.ts>',
    ],
    ["a file of the home", 'unlink("/srv/storm/home/.cache/a") = 0'],
    ["the system's own", 'openat(AT_FDCWD</>, "/etc/hosts", O_RDONLY) = 5</etc/hosts>'],
    ["a lookup that finds nothing", 'openat(AT_FDCWD</>, "/root/a", O_RDONLY) = -1 ENOENT (No such file or directory)'],
    ["a folder on the way to the project", 'stat("/srv/storm", {st_mode=S_IFDIR}) = 0'],
    ["a socket that is looked at", 'newfstatat(9<socket:[77]>, "", {st_mode=S_IFSOCK}, AT_EMPTY_PATH) = 0'],
    [
      "a path that is resolved and not opened",
      'openat(AT_FDCWD</>, "/srv/storm/project/link-out/a", O_RDONLY|O_PATH) = 5</srv/storm/sibling/a>',
    ],
    ["where a new link points", 'symlink("/root/a", "/srv/storm/project/b") = 0'],
    ["a program's arguments", 'execve("/usr/bin/git", ["git", "/root/a"], 0x1 /* 9 vars */) = 0'],
  ])(promised("storm.B3", "%s is none"), (_what, line) => {
    expect(foreign(line)).toEqual([])
  })
})
