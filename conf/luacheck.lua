-- Settings of luacheck for scripts/lib/lint_lua.py: the globals of a script in Redis 6.2 or newer that we use.
stds.redis = {
  read_globals = {
    'ARGV', 'KEYS', 'error', 'ipairs', 'next', 'pairs', 'tonumber', 'tostring', 'type', 'unpack',
    cjson = { fields = { 'decode' } },
    math = { fields = { 'floor', 'max', 'min' } },
    redis = { fields = { 'call', 'sha1hex' } },
    string = { fields = { 'find', 'format', 'gmatch', 'gsub', 'match', 'sub' } },
    table = { fields = { 'concat', 'insert', 'remove', 'sort' } },
  },
}
std = 'redis'
max_line_length = false
