module baton.invalid/tools

go 1.25

require github.com/baiirun/prog v0.17.0
