import type { Connection } from "./sqlite-connection.ts"
import { type Cells, itemRow, labelRow } from "./sqlite-rows.ts"
import type { DependencyStore, ItemStore, LabelStore, LogStore, ProjectStore } from "./store.ts"

const LABEL_NAMES = `
  SELECT il.item_id, l.name FROM item_labels il JOIN labels l ON il.label_id = l.id ORDER BY il.item_id, l.name`

export const createSqliteItems = (connection: Connection): ItemStore => ({
  find: (id) => {
    const cells = connection.first("SELECT * FROM items WHERE id = ?", id)
    return cells === undefined ? undefined : itemRow(cells)
  },
  all: () => connection.all("SELECT * FROM items ORDER BY rowid").map(itemRow),
  childStatuses: (parentId) =>
    connection.all("SELECT status FROM items WHERE parent_id = ?", parentId).map(({ status }) => String(status)),
  insert: (row) => connection.insert("items", row),
  update: (id, changes) => connection.update("items", changes, { id }),
  remove: (id) => {
    connection.run("DELETE FROM items WHERE id = ?", id)
  },
})

export const createSqliteDependencies = (connection: Connection): DependencyStore => ({
  all: () =>
    connection
      .all("SELECT item_id, depends_on FROM deps ORDER BY item_id, depends_on")
      .map((cells) => ({ itemId: String(cells.item_id), dependsOn: String(cells.depends_on) })),
  add: ({ itemId, dependsOn }) => connection.insert("deps", { item_id: itemId, depends_on: dependsOn }, "OR IGNORE"),
  removeOf: (itemId) => {
    connection.run("DELETE FROM deps WHERE item_id = ? OR depends_on = ?", itemId, itemId)
  },
})

export const createSqliteLogs = (connection: Connection): LogStore => ({
  of: (itemId) =>
    connection
      .all("SELECT message, created_at FROM logs WHERE item_id = ? ORDER BY created_at, id", itemId)
      .map((cells) => ({ message: String(cells.message), createdAt: String(cells.created_at) })),
  add: (itemId, message) => connection.insert("logs", { item_id: itemId, message }),
  removeOf: (itemId) => {
    connection.run("DELETE FROM logs WHERE item_id = ?", itemId)
  },
})

export const createSqliteProjects = (connection: Connection): ProjectStore => ({
  names: () => connection.all("SELECT name FROM projects ORDER BY name").map(({ name }) => String(name)),
  ensure: (name, at) => connection.insert("projects", { name, createdAt: at, updatedAt: at }, "OR IGNORE"),
})

const groupNames = (rows: readonly Cells[]): Map<string, string[]> => {
  const grouped = new Map<string, string[]>()
  for (const cells of rows) {
    const [itemId, name] = [String(cells.item_id), String(cells.name)]
    const known = grouped.get(itemId)
    if (known === undefined) grouped.set(itemId, [name])
    else known.push(name)
  }
  return grouped
}

export const createSqliteLabels = (connection: Connection): LabelStore => ({
  of: (project) => connection.all("SELECT * FROM labels WHERE project = ? ORDER BY name", project).map(labelRow),
  insert: (row) => connection.insert("labels", row),
  rename: (project, name, newName, at) =>
    connection.update("labels", { name: newName, updatedAt: at }, { project, name }),
  remove: (id) => {
    connection.run("DELETE FROM item_labels WHERE label_id = ?", id)
    connection.run("DELETE FROM labels WHERE id = ?", id)
  },
  namesByItem: () => groupNames(connection.all(LABEL_NAMES)),
  attach: (itemId, labelId) => connection.insert("item_labels", { item_id: itemId, label_id: labelId }, "OR IGNORE"),
  detach: (itemId, labelId) =>
    connection.run("DELETE FROM item_labels WHERE item_id = ? AND label_id = ?", itemId, labelId) > 0,
})
