# fish completion for duly. Made by `duly completion fish`; do not edit.

function __duly_offer --no-scope-shadowing
    set -l kind $argv[1]
    test (count $argv) -gt 1; and printf '%s\n' $argv[2..-1]
    switch $kind
        case jobs scopes zones
            set -l where
            test -n "$ledger"; and set where --ledger $ledger
            $words[1] completion --names $kind $where 2>/dev/null </dev/null
        case files
            __fish_complete_path $cur
    end
end

function __duly_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l here ''
    set -l flag ''
    set -l ledger ''
    set -l at 0
    for i in (seq 2 (count $words))
        set -l word $words[$i]
        if test -n "$flag"
            test "$flag" = --ledger; and set ledger $word
            set flag ''
        else if test "$here" = exec -a "$word" = --
            set -l rest $words[(math $i + 1)..-1]
            test $i -eq (count $words); and set rest
            complete -C (string join ' ' -- (string escape -- $rest) "$cur")
            return
        else if string match -q -- '-*' $word
            contains -- "$here $word" 'exec --cron' 'exec --period' 'exec --every' 'exec --zone' 'exec --at' 'exec --offset' 'exec --gap' 'exec --fold' 'exec --anchor' 'exec --calendar' 'exec --days-off' 'exec --scope' 'exec --catch-up' 'exec --effect' 'exec --remembers' 'exec --clean-exits' 'exec --retries' 'exec --timeout' 'exec --lease' 'exec --grace' 'exec --retain' 'exec --overlap' 'exec --ordered' 'exec --owner' 'exec --window' 'exec --trigger' 'exec --output' 'exec --keep-output' 'exec --outcome-file' 'exec --exit-duplicate' 'exec --settle' 'exec --busy-timeout' 'exec --ledger' 'exec --config' 'exec --log-format' 'due --scope' 'due --ledger' 'due --config' 'daemon --concurrency' 'daemon --per-job' 'daemon --log-format' 'daemon --celery' 'daemon --again' 'daemon --poll' 'daemon --web' 'daemon --ledger' 'daemon --config' 'status -n' 'status --scope' 'status --format' 'status --time' 'status --ledger' 'status --config' 'check --scope' 'check --format' 'check --time' 'check --ledger' 'check --config' 'explain --scope' 'explain --format' 'explain --time' 'explain --ledger' 'explain --config' 'next -n' 'next --cron' 'next --period' 'next --every' 'next --zone' 'next --at' 'next --offset' 'next --gap' 'next --fold' 'next --anchor' 'next --calendar' 'next --days-off' 'next --scope' 'next --format' 'next --time' 'next --ledger' 'next --config' 'runs --state' 'runs -n' 'runs --since' 'runs --by' 'runs --kind' 'runs --before' 'runs -o' 'runs --output' 'runs --at' 'runs --key-file' 'runs --expect' 'runs --against' 'runs --scope' 'runs --format' 'runs --time' 'runs --ledger' 'runs --config' 'web --host' 'web --port' 'web --allow-host' 'web --root-path' 'web --token-file' 'web --basic-file' 'web --password-for' 'web --trust-header' 'web --trust-from' 'web --ledger' 'web --config' 'metrics --textfile' 'metrics --listen' 'metrics --ledger' 'metrics --config' 'retry --scope' 'retry --format' 'retry --time' 'retry --ledger' 'retry --config' 'retry --reason' 'skip --scope' 'skip --format' 'skip --time' 'skip --ledger' 'skip --config' 'skip --reason' 'unskip --scope' 'unskip --format' 'unskip --time' 'unskip --ledger' 'unskip --config' 'unskip --reason' 'reopen --scope' 'reopen --format' 'reopen --time' 'reopen --ledger' 'reopen --config' 'reopen --reason' 'cancel --scope' 'cancel --format' 'cancel --time' 'cancel --ledger' 'cancel --config' 'cancel --reason' 'resolve --scope' 'resolve --format' 'resolve --time' 'resolve --ledger' 'resolve --config' 'resolve --as' 'resolve --again-in' 'resolve --evidence' 'resolve --message' 'backfill plan --what' 'backfill plan --order' 'backfill plan --concurrency' 'backfill plan --stop-after' 'backfill plan --scope' 'backfill plan --format' 'backfill plan --time' 'backfill plan --ledger' 'backfill plan --config' 'backfill start --what' 'backfill start --order' 'backfill start --concurrency' 'backfill start --stop-after' 'backfill start --scope' 'backfill start --reason' 'backfill start --expect' 'backfill start --format' 'backfill start --time' 'backfill start --ledger' 'backfill start --config' 'backfill pause --reason' 'backfill pause --format' 'backfill pause --time' 'backfill pause --ledger' 'backfill pause --config' 'backfill resume --reason' 'backfill resume --format' 'backfill resume --time' 'backfill resume --ledger' 'backfill resume --config' 'backfill cancel --reason' 'backfill cancel --format' 'backfill cancel --time' 'backfill cancel --ledger' 'backfill cancel --config' 'backfill show --format' 'backfill show --time' 'backfill show --ledger' 'backfill show --config' 'backfill list -n' 'backfill list --scope' 'backfill list --format' 'backfill list --time' 'backfill list --ledger' 'backfill list --config' 'outbox list --to' 'outbox list -n' 'outbox list --format' 'outbox list --time' 'outbox list --ledger' 'outbox list --config' 'outbox show --scope' 'outbox show --format' 'outbox show --time' 'outbox show --ledger' 'outbox show --config' 'outbox deliver --to' 'outbox deliver --format' 'outbox deliver --time' 'outbox deliver --ledger' 'outbox deliver --config' 'outbox retry --message' 'outbox retry --reason' 'outbox retry --scope' 'outbox retry --format' 'outbox retry --time' 'outbox retry --ledger' 'outbox retry --config' 'outbox skip --message' 'outbox skip --reason' 'outbox skip --scope' 'outbox skip --format' 'outbox skip --time' 'outbox skip --ledger' 'outbox skip --config' 'alerts list -n' 'alerts list --format' 'alerts list --time' 'alerts list --ledger' 'alerts list --config' 'alerts look --format' 'alerts look --time' 'alerts look --ledger' 'alerts look --config' 'alerts silence --kind' 'alerts silence --until' 'alerts silence --reason' 'alerts silence --scope' 'alerts silence --format' 'alerts silence --time' 'alerts silence --ledger' 'alerts silence --config' 'alerts unsilence --kind' 'alerts unsilence --reason' 'alerts unsilence --scope' 'alerts unsilence --format' 'alerts unsilence --time' 'alerts unsilence --ledger' 'alerts unsilence --config' 'jobs list --format' 'jobs list --time' 'jobs list --ledger' 'jobs list --config' 'jobs show --format' 'jobs show --time' 'jobs show --ledger' 'jobs show --config' 'jobs plan --cron' 'jobs plan --period' 'jobs plan --every' 'jobs plan --zone' 'jobs plan --at' 'jobs plan --offset' 'jobs plan --gap' 'jobs plan --fold' 'jobs plan --anchor' 'jobs plan --calendar' 'jobs plan --days-off' 'jobs plan --format' 'jobs plan --time' 'jobs plan --ledger' 'jobs plan --config' 'jobs apply --reason' 'jobs apply --cron' 'jobs apply --period' 'jobs apply --every' 'jobs apply --zone' 'jobs apply --at' 'jobs apply --offset' 'jobs apply --gap' 'jobs apply --fold' 'jobs apply --anchor' 'jobs apply --calendar' 'jobs apply --days-off' 'jobs apply --format' 'jobs apply --time' 'jobs apply --ledger' 'jobs apply --config' 'jobs pause --until' 'jobs pause --reason' 'jobs pause --scope' 'jobs pause --format' 'jobs pause --time' 'jobs pause --ledger' 'jobs pause --config' 'jobs resume --catch-up' 'jobs resume --reason' 'jobs resume --scope' 'jobs resume --format' 'jobs resume --time' 'jobs resume --ledger' 'jobs resume --config' 'jobs scopes list --format' 'jobs scopes list --time' 'jobs scopes list --ledger' 'jobs scopes list --config' 'jobs scopes add --from' 'jobs scopes add --until' 'jobs scopes add --file' 'jobs scopes add --expect' 'jobs scopes add --reason' 'jobs scopes add --format' 'jobs scopes add --time' 'jobs scopes add --ledger' 'jobs scopes add --config' 'jobs scopes retire --at' 'jobs scopes retire --file' 'jobs scopes retire --expect' 'jobs scopes retire --reason' 'jobs scopes retire --format' 'jobs scopes retire --time' 'jobs scopes retire --ledger' 'jobs scopes retire --config' 'jobs rename --reason' 'jobs rename --format' 'jobs rename --time' 'jobs rename --ledger' 'jobs rename --config' 'jobs retire --from' 'jobs retire --reason' 'jobs retire --format' 'jobs retire --time' 'jobs retire --ledger' 'jobs retire --config' 'jobs check --format' 'jobs check --time' 'jobs check --ledger' 'jobs check --config' 'import crontab --cron' 'import crontab --zone' 'import crontab --prefix' 'import crontab --duly' 'import crontab --config' 'import crontab --ledger' 'import systemd --root' 'import systemd --zone' 'import systemd --prefix' 'import systemd --duly' 'import systemd --config' 'import systemd --ledger' 'import kubernetes --container' 'import kubernetes --secret' 'import kubernetes --zone' 'import kubernetes --prefix' 'import kubernetes --duly' 'db create --ledger' 'db create --config' 'db migrate --format' 'db migrate --time' 'db migrate --ledger' 'db migrate --config' 'db sql --from' 'db sql --ledger' 'db sql --config' 'db restored --at' 'db restored --reason' 'db restored --format' 'db restored --time' 'db restored --ledger' 'db restored --config' 'db backup --ledger' 'db backup --config' 'db verify --format' 'db verify --time' 'db verify --ledger' 'db verify --config' 'db prune --older-than' 'db prune --batch' 'db prune --scope' 'db prune --format' 'db prune --time' 'db prune --ledger' 'db prune --config' 'doctor --format' 'doctor --ledger' 'doctor --config'
            and set flag $word
        else
            set -l below (string trim -- "$here $word")
            if contains -- $below 'exec' 'due' 'daemon' 'status' 'check' 'explain' 'next' 'runs' 'web' 'metrics' 'retry' 'skip' 'unskip' 'reopen' 'cancel' 'resolve' 'backfill' 'backfill plan' 'backfill start' 'backfill pause' 'backfill resume' 'backfill cancel' 'backfill show' 'backfill list' 'outbox' 'outbox list' 'outbox show' 'outbox deliver' 'outbox retry' 'outbox skip' 'alerts' 'alerts list' 'alerts look' 'alerts silence' 'alerts unsilence' 'jobs' 'jobs list' 'jobs show' 'jobs plan' 'jobs apply' 'jobs pause' 'jobs resume' 'jobs scopes' 'jobs scopes list' 'jobs scopes add' 'jobs scopes retire' 'jobs rename' 'jobs retire' 'jobs check' 'jobs schema' 'import' 'import crontab' 'import systemd' 'import kubernetes' 'db' 'db create' 'db migrate' 'db sql' 'db restored' 'db backup' 'db verify' 'db prune' 'doctor' 'completion' 'demo'
                set here $below
            else
                set at (math $at + 1)
            end
        end
    end
    if test -n "$flag"
        switch "$here $flag"
            case 'exec --period'
                __duly_offer nothing hourly daily weekly monthly quarterly yearly
            case 'exec --zone'
                __duly_offer zones
            case 'exec --gap'
                __duly_offer nothing shift_to_transition shift_forward skip
            case 'exec --fold'
                __duly_offer nothing first second both
            case 'exec --calendar'
                __duly_offer files
            case 'exec --days-off'
                __duly_offer nothing skip previous next
            case 'exec --scope'
                __duly_offer scopes
            case 'exec --catch-up'
                __duly_offer nothing each latest fresh
            case 'exec --effect'
                __duly_offer nothing transactional idempotent external
            case 'exec --overlap'
                __duly_offer nothing yes no
            case 'exec --ordered'
                __duly_offer nothing yes no
            case 'exec --window'
                __duly_offer nothing yesterday today
            case 'exec --output'
                __duly_offer files
            case 'exec --outcome-file'
                __duly_offer files
            case 'exec --ledger'
                __duly_offer files
            case 'exec --config'
                __duly_offer files
            case 'exec --log-format'
                __duly_offer nothing text json logfmt
            case 'due --scope'
                __duly_offer scopes
            case 'due --ledger'
                __duly_offer files
            case 'due --config'
                __duly_offer files
            case 'daemon --log-format'
                __duly_offer nothing text json logfmt
            case 'daemon --ledger'
                __duly_offer files
            case 'daemon --config'
                __duly_offer files
            case 'status --scope'
                __duly_offer scopes
            case 'status --format'
                __duly_offer nothing table json jsonl csv keys
            case 'status --time'
                __duly_offer nothing local utc relative
            case 'status --ledger'
                __duly_offer files
            case 'status --config'
                __duly_offer files
            case 'check --scope'
                __duly_offer scopes
            case 'check --format'
                __duly_offer nothing table json jsonl csv keys
            case 'check --time'
                __duly_offer nothing local utc relative
            case 'check --ledger'
                __duly_offer files
            case 'check --config'
                __duly_offer files
            case 'explain --scope'
                __duly_offer scopes
            case 'explain --format'
                __duly_offer nothing table json jsonl csv keys
            case 'explain --time'
                __duly_offer nothing local utc relative
            case 'explain --ledger'
                __duly_offer files
            case 'explain --config'
                __duly_offer files
            case 'next --around-dst'
                __duly_offer nothing next previous
            case 'next --period'
                __duly_offer nothing hourly daily weekly monthly quarterly yearly
            case 'next --zone'
                __duly_offer zones
            case 'next --gap'
                __duly_offer nothing shift_to_transition shift_forward skip
            case 'next --fold'
                __duly_offer nothing first second both
            case 'next --calendar'
                __duly_offer files
            case 'next --days-off'
                __duly_offer nothing skip previous next
            case 'next --scope'
                __duly_offer scopes
            case 'next --format'
                __duly_offer nothing table json jsonl csv keys
            case 'next --time'
                __duly_offer nothing local utc relative
            case 'next --ledger'
                __duly_offer files
            case 'next --config'
                __duly_offer files
            case 'runs --state'
                __duly_offer nothing open running completed failed unknown skipped replaced
            case 'runs -o' 'runs --output'
                __duly_offer files
            case 'runs --key-file'
                __duly_offer files
            case 'runs --against'
                __duly_offer files
            case 'runs --scope'
                __duly_offer scopes
            case 'runs --format'
                __duly_offer nothing table json jsonl csv keys
            case 'runs --time'
                __duly_offer nothing local utc relative
            case 'runs --ledger'
                __duly_offer files
            case 'runs --config'
                __duly_offer files
            case 'web --root-path'
                __duly_offer files
            case 'web --token-file'
                __duly_offer files
            case 'web --basic-file'
                __duly_offer files
            case 'web --ledger'
                __duly_offer files
            case 'web --config'
                __duly_offer files
            case 'metrics --textfile'
                __duly_offer files
            case 'metrics --ledger'
                __duly_offer files
            case 'metrics --config'
                __duly_offer files
            case 'retry --scope'
                __duly_offer scopes
            case 'retry --format'
                __duly_offer nothing table json jsonl csv keys
            case 'retry --time'
                __duly_offer nothing local utc relative
            case 'retry --ledger'
                __duly_offer files
            case 'retry --config'
                __duly_offer files
            case 'skip --scope'
                __duly_offer scopes
            case 'skip --format'
                __duly_offer nothing table json jsonl csv keys
            case 'skip --time'
                __duly_offer nothing local utc relative
            case 'skip --ledger'
                __duly_offer files
            case 'skip --config'
                __duly_offer files
            case 'unskip --scope'
                __duly_offer scopes
            case 'unskip --format'
                __duly_offer nothing table json jsonl csv keys
            case 'unskip --time'
                __duly_offer nothing local utc relative
            case 'unskip --ledger'
                __duly_offer files
            case 'unskip --config'
                __duly_offer files
            case 'reopen --scope'
                __duly_offer scopes
            case 'reopen --format'
                __duly_offer nothing table json jsonl csv keys
            case 'reopen --time'
                __duly_offer nothing local utc relative
            case 'reopen --ledger'
                __duly_offer files
            case 'reopen --config'
                __duly_offer files
            case 'cancel --scope'
                __duly_offer scopes
            case 'cancel --format'
                __duly_offer nothing table json jsonl csv keys
            case 'cancel --time'
                __duly_offer nothing local utc relative
            case 'cancel --ledger'
                __duly_offer files
            case 'cancel --config'
                __duly_offer files
            case 'resolve --scope'
                __duly_offer scopes
            case 'resolve --format'
                __duly_offer nothing table json jsonl csv keys
            case 'resolve --time'
                __duly_offer nothing local utc relative
            case 'resolve --ledger'
                __duly_offer files
            case 'resolve --config'
                __duly_offer files
            case 'resolve --as'
                __duly_offer nothing done not-done later
            case 'backfill plan --order'
                __duly_offer nothing oldest newest
            case 'backfill plan --scope'
                __duly_offer scopes
            case 'backfill plan --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill plan --time'
                __duly_offer nothing local utc relative
            case 'backfill plan --ledger'
                __duly_offer files
            case 'backfill plan --config'
                __duly_offer files
            case 'backfill start --order'
                __duly_offer nothing oldest newest
            case 'backfill start --scope'
                __duly_offer scopes
            case 'backfill start --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill start --time'
                __duly_offer nothing local utc relative
            case 'backfill start --ledger'
                __duly_offer files
            case 'backfill start --config'
                __duly_offer files
            case 'backfill pause --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill pause --time'
                __duly_offer nothing local utc relative
            case 'backfill pause --ledger'
                __duly_offer files
            case 'backfill pause --config'
                __duly_offer files
            case 'backfill resume --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill resume --time'
                __duly_offer nothing local utc relative
            case 'backfill resume --ledger'
                __duly_offer files
            case 'backfill resume --config'
                __duly_offer files
            case 'backfill cancel --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill cancel --time'
                __duly_offer nothing local utc relative
            case 'backfill cancel --ledger'
                __duly_offer files
            case 'backfill cancel --config'
                __duly_offer files
            case 'backfill show --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill show --time'
                __duly_offer nothing local utc relative
            case 'backfill show --ledger'
                __duly_offer files
            case 'backfill show --config'
                __duly_offer files
            case 'backfill list --scope'
                __duly_offer scopes
            case 'backfill list --format'
                __duly_offer nothing table json jsonl csv keys
            case 'backfill list --time'
                __duly_offer nothing local utc relative
            case 'backfill list --ledger'
                __duly_offer files
            case 'backfill list --config'
                __duly_offer files
            case 'outbox list --format'
                __duly_offer nothing table json jsonl csv keys
            case 'outbox list --time'
                __duly_offer nothing local utc relative
            case 'outbox list --ledger'
                __duly_offer files
            case 'outbox list --config'
                __duly_offer files
            case 'outbox show --scope'
                __duly_offer scopes
            case 'outbox show --format'
                __duly_offer nothing table json jsonl csv keys
            case 'outbox show --time'
                __duly_offer nothing local utc relative
            case 'outbox show --ledger'
                __duly_offer files
            case 'outbox show --config'
                __duly_offer files
            case 'outbox deliver --format'
                __duly_offer nothing table json jsonl csv keys
            case 'outbox deliver --time'
                __duly_offer nothing local utc relative
            case 'outbox deliver --ledger'
                __duly_offer files
            case 'outbox deliver --config'
                __duly_offer files
            case 'outbox retry --scope'
                __duly_offer scopes
            case 'outbox retry --format'
                __duly_offer nothing table json jsonl csv keys
            case 'outbox retry --time'
                __duly_offer nothing local utc relative
            case 'outbox retry --ledger'
                __duly_offer files
            case 'outbox retry --config'
                __duly_offer files
            case 'outbox skip --scope'
                __duly_offer scopes
            case 'outbox skip --format'
                __duly_offer nothing table json jsonl csv keys
            case 'outbox skip --time'
                __duly_offer nothing local utc relative
            case 'outbox skip --ledger'
                __duly_offer files
            case 'outbox skip --config'
                __duly_offer files
            case 'alerts list --format'
                __duly_offer nothing table json jsonl csv keys
            case 'alerts list --time'
                __duly_offer nothing local utc relative
            case 'alerts list --ledger'
                __duly_offer files
            case 'alerts list --config'
                __duly_offer files
            case 'alerts look --format'
                __duly_offer nothing table json jsonl csv keys
            case 'alerts look --time'
                __duly_offer nothing local utc relative
            case 'alerts look --ledger'
                __duly_offer files
            case 'alerts look --config'
                __duly_offer files
            case 'alerts silence --kind'
                __duly_offer nothing late failed unknown stuck superseded drift
            case 'alerts silence --scope'
                __duly_offer scopes
            case 'alerts silence --format'
                __duly_offer nothing table json jsonl csv keys
            case 'alerts silence --time'
                __duly_offer nothing local utc relative
            case 'alerts silence --ledger'
                __duly_offer files
            case 'alerts silence --config'
                __duly_offer files
            case 'alerts unsilence --kind'
                __duly_offer nothing late failed unknown stuck superseded drift
            case 'alerts unsilence --scope'
                __duly_offer scopes
            case 'alerts unsilence --format'
                __duly_offer nothing table json jsonl csv keys
            case 'alerts unsilence --time'
                __duly_offer nothing local utc relative
            case 'alerts unsilence --ledger'
                __duly_offer files
            case 'alerts unsilence --config'
                __duly_offer files
            case 'jobs list --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs list --time'
                __duly_offer nothing local utc relative
            case 'jobs list --ledger'
                __duly_offer files
            case 'jobs list --config'
                __duly_offer files
            case 'jobs show --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs show --time'
                __duly_offer nothing local utc relative
            case 'jobs show --ledger'
                __duly_offer files
            case 'jobs show --config'
                __duly_offer files
            case 'jobs plan --period'
                __duly_offer nothing hourly daily weekly monthly quarterly yearly
            case 'jobs plan --zone'
                __duly_offer zones
            case 'jobs plan --gap'
                __duly_offer nothing shift_to_transition shift_forward skip
            case 'jobs plan --fold'
                __duly_offer nothing first second both
            case 'jobs plan --calendar'
                __duly_offer files
            case 'jobs plan --days-off'
                __duly_offer nothing skip previous next
            case 'jobs plan --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs plan --time'
                __duly_offer nothing local utc relative
            case 'jobs plan --ledger'
                __duly_offer files
            case 'jobs plan --config'
                __duly_offer files
            case 'jobs apply --period'
                __duly_offer nothing hourly daily weekly monthly quarterly yearly
            case 'jobs apply --zone'
                __duly_offer zones
            case 'jobs apply --gap'
                __duly_offer nothing shift_to_transition shift_forward skip
            case 'jobs apply --fold'
                __duly_offer nothing first second both
            case 'jobs apply --calendar'
                __duly_offer files
            case 'jobs apply --days-off'
                __duly_offer nothing skip previous next
            case 'jobs apply --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs apply --time'
                __duly_offer nothing local utc relative
            case 'jobs apply --ledger'
                __duly_offer files
            case 'jobs apply --config'
                __duly_offer files
            case 'jobs pause --scope'
                __duly_offer scopes
            case 'jobs pause --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs pause --time'
                __duly_offer nothing local utc relative
            case 'jobs pause --ledger'
                __duly_offer files
            case 'jobs pause --config'
                __duly_offer files
            case 'jobs resume --catch-up'
                __duly_offer nothing each latest fresh
            case 'jobs resume --scope'
                __duly_offer scopes
            case 'jobs resume --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs resume --time'
                __duly_offer nothing local utc relative
            case 'jobs resume --ledger'
                __duly_offer files
            case 'jobs resume --config'
                __duly_offer files
            case 'jobs scopes list --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs scopes list --time'
                __duly_offer nothing local utc relative
            case 'jobs scopes list --ledger'
                __duly_offer files
            case 'jobs scopes list --config'
                __duly_offer files
            case 'jobs scopes add --from'
                __duly_offer nothing yesterday today
            case 'jobs scopes add --until'
                __duly_offer nothing yesterday today
            case 'jobs scopes add --file'
                __duly_offer files
            case 'jobs scopes add --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs scopes add --time'
                __duly_offer nothing local utc relative
            case 'jobs scopes add --ledger'
                __duly_offer files
            case 'jobs scopes add --config'
                __duly_offer files
            case 'jobs scopes retire --at'
                __duly_offer nothing yesterday today
            case 'jobs scopes retire --file'
                __duly_offer files
            case 'jobs scopes retire --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs scopes retire --time'
                __duly_offer nothing local utc relative
            case 'jobs scopes retire --ledger'
                __duly_offer files
            case 'jobs scopes retire --config'
                __duly_offer files
            case 'jobs rename --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs rename --time'
                __duly_offer nothing local utc relative
            case 'jobs rename --ledger'
                __duly_offer files
            case 'jobs rename --config'
                __duly_offer files
            case 'jobs retire --from'
                __duly_offer nothing yesterday today
            case 'jobs retire --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs retire --time'
                __duly_offer nothing local utc relative
            case 'jobs retire --ledger'
                __duly_offer files
            case 'jobs retire --config'
                __duly_offer files
            case 'jobs check --format'
                __duly_offer nothing table json jsonl csv keys
            case 'jobs check --time'
                __duly_offer nothing local utc relative
            case 'jobs check --ledger'
                __duly_offer files
            case 'jobs check --config'
                __duly_offer files
            case 'import crontab --cron'
                __duly_offer nothing debian cronie
            case 'import crontab --zone'
                __duly_offer zones
            case 'import crontab --duly'
                __duly_offer files
            case 'import crontab --config'
                __duly_offer files
            case 'import crontab --ledger'
                __duly_offer files
            case 'import systemd --zone'
                __duly_offer zones
            case 'import systemd --duly'
                __duly_offer files
            case 'import systemd --config'
                __duly_offer files
            case 'import systemd --ledger'
                __duly_offer files
            case 'import kubernetes --zone'
                __duly_offer zones
            case 'import kubernetes --duly'
                __duly_offer files
            case 'db create --ledger'
                __duly_offer files
            case 'db create --config'
                __duly_offer files
            case 'db migrate --format'
                __duly_offer nothing table json jsonl csv keys
            case 'db migrate --time'
                __duly_offer nothing local utc relative
            case 'db migrate --ledger'
                __duly_offer files
            case 'db migrate --config'
                __duly_offer files
            case 'db sql --ledger'
                __duly_offer files
            case 'db sql --config'
                __duly_offer files
            case 'db restored --format'
                __duly_offer nothing table json jsonl csv keys
            case 'db restored --time'
                __duly_offer nothing local utc relative
            case 'db restored --ledger'
                __duly_offer files
            case 'db restored --config'
                __duly_offer files
            case 'db backup --ledger'
                __duly_offer files
            case 'db backup --config'
                __duly_offer files
            case 'db verify --format'
                __duly_offer nothing table json jsonl csv keys
            case 'db verify --time'
                __duly_offer nothing local utc relative
            case 'db verify --ledger'
                __duly_offer files
            case 'db verify --config'
                __duly_offer files
            case 'db prune --scope'
                __duly_offer scopes
            case 'db prune --format'
                __duly_offer nothing table json jsonl csv keys
            case 'db prune --time'
                __duly_offer nothing local utc relative
            case 'db prune --ledger'
                __duly_offer files
            case 'db prune --config'
                __duly_offer files
            case 'doctor --format'
                __duly_offer nothing table json jsonl csv keys
            case 'doctor --ledger'
                __duly_offer files
            case 'doctor --config'
                __duly_offer files
        end
        return
    end
    if string match -q -- '-*' $cur
        switch $here
            case ''
                printf '%s\n' '--version	which release this is' '--help	what it does, with an example'
            case 'exec'
                printf '%s\n' '--cron	five fields or @daily; may be given several times, all lines are one schedule' '--period	hourly, daily, weekly, monthly, quarterly or yearly: the period is owed once it has ended' '--every	an interval, as 15m or 6h, counted in UTC from --anchor' '--zone	time zone of --cron and --period, as Europe/Berlin or UTC' '--at	wall clock after the period\'s end from which it is due' '--offset	where a period begins: 06:00 of a day, sun of a week, apr of a quarter or year' '--gap	a time that the clocks skip: shift_to_transition, shift_forward or skip' '--fold	a time that the clocks repeat: first, second or both' '--anchor	where --every counts from, as 2026-01-01T00:00:00Z' '--calendar	days off: a list (sat sun 2026-12-28 2021/06-19) or an .ics file; it is named after the file' '--days-off	what is done about them: skip, next or previous business day' '--scope	the tenant or account that the run belongs to' '--catch-up	after downtime: each, or latest (which is what a job first seen here gets)' '--effect	transactional, idempotent or external (the default of commands)' '--remembers	idempotent: how long the destination deduplicates, as 24h, or forever' '--clean-exits	exit codes that prove that nothing happened, as 75,111' '--retries	how often a failure is retried, in place until the deadline' '--no-retry	leave retries to whatever calls duly' '--timeout	end the command after this long: SIGTERM, then SIGKILL' '--lease	how long a claim lives without a heartbeat (60s)' '--grace	how long after its due time a window may still be open without being late' '--retain	how long what is settled is kept, as 90d, or forever; duly db prune forgets it then' '--overlap	whether runs of one job and scope may overlap (no)' '--ordered	whether a run waits until the one before it is settled (no)' '--owner	who is asked about this job' '--window	work this window, as 2026-11-28 or 2026-11-28T14' '--adhoc	run outside the schedule; prints its id, and a retry passes it back' '--trigger	work the window that a scheduler elsewhere meant: airflow, cloud-scheduler, eventbridge, kubernetes, systemd' '--backfill	work a backfill\'s windows, one after the other, until none is left to take' '--one	stop after one run' '--output	the command writes to $DULY_OUTPUT; moved to FILE when it ends with 0' '--replace	with --output: overwrite what is there' '--chronic	show the command\'s output only if it fails' '--keep-output	keep the last of the command\'s output in the ledger, redacted, as 16k (64k at most)' '--outcome-file	write how it ended to PATH, as one JSON object' '--exit-duplicate	exit with N instead of 0 when nothing had to be done (Airflow: 99)' '--settle	how long to try to write down how the command ended (10m)' '--busy-timeout	how long to wait for a busy ledger (10s)' '--ledger	the ledger, as sqlite:////var/lib/duly/ledger.db' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s, the system\'s' '--log-format	text, json or logfmt: a line on stderr for each attempt, with fixed fields' '--verbose	-v: say what is done also when all is well' '--quiet	-q: say nothing but errors' '--help	what it does, with an example'
            case 'due'
                printf '%s\n' '--quiet	say it with the exit code alone' '--scope	the tenant or account whose runs are meant' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'daemon'
                printf '%s\n' '--concurrency	runs at once (default: 8)' '--per-job	runs of one job at once (default: 2)' '--log-format	text, or a JSON object or logfmt a line (default: text)' '--celery	an app of Celery\'s whose workers make the attempts at jobs of modules; its module calls duly.celery.carry' '--again	with --celery: how long a message may wait for a worker before its line is asked for again (default: 1m)' '--poll	how often to look where nothing is known to come (default: 5s)' '--web	serve the dashboard too, to look and nothing else; without an address for this machine, as `duly web` does' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'status'
                printf '%s\n' '--watch	look again every few seconds (2), until Ctrl-C; where there is no terminal print what changes' '--all	a line for each period; else many of a kind are one line' '--grid	each line\'s newest periods, a glyph each' '-n	how many periods --grid shows (default: 30)' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'check'
                printf '%s\n' '--strict	a skipped period is not complete' '--nagios	one line of a plugin; 0 complete or not yet, 2 not complete, 3 cannot tell' '--all	every period of a range, a line each, complete ones too' '--quiet	say it with the exit code alone' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'explain'
                printf '%s\n' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'next'
                printf '%s\n' '-n	how many coming ones (default: 5, after 3 past ones)' '--around-dst	the occurrences around the next change of the clocks, or the previous one' '--cron	five fields or @daily; may be given several times, all lines are one schedule' '--period	hourly, daily, weekly, monthly, quarterly or yearly: the period is owed once it has ended' '--every	an interval, as 15m or 6h, counted in UTC from --anchor' '--zone	time zone of --cron and --period, as Europe/Berlin or UTC' '--at	wall clock after the period\'s end from which it is due' '--offset	where a period begins: 06:00 of a day, sun of a week, apr of a quarter or year' '--gap	a time that the clocks skip: shift_to_transition, shift_forward or skip' '--fold	a time that the clocks repeat: first, second or both' '--anchor	where --every counts from, as 2026-01-01T00:00:00Z' '--calendar	days off: a list (sat sun 2026-12-28 2021/06-19) or an .ics file; it is named after the file' '--days-off	what is done about them: skip, next or previous business day' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'runs'
                printf '%s\n' '--state	only runs in this state' '-n	how many, newest first (default: 20)' '--since	only from then on: -7d, or 2026-11-01T00:00:00Z' '--by	only what this person, host or part of duly did' '--kind	only events of this kind: retried, policies_changed …' '--before	go on after the last of a page, as --format keys printed it' '--output	where to write; a new file, or - (default)' '--at	the instant by which it is judged what is late (default: now)' '--key-file	a secret that signs the export, or by which it was signed' '--expect	the last hash, as it was printed when the file was written' '--quiet	do not say how far it is' '--against	a ledger: say what it says otherwise than the file' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'web'
                printf '%s\n' '--host	where to listen (default: 127.0.0.1)' '--port	default: 8327; 0: any that is free' '--allow-writes	answer what changes something, too' '--allow-host	a name that it is reached by; may be repeated' '--root-path	where a proxy has it, as /duly' '--token-file	a file that holds a token; or $DULY_WEB_TOKEN. A browser takes it as a password' '--basic-file	a file of people, with lines that --password-for prints' '--password-for	print the line of a person, and serve nothing' '--trust-header	a proxy says in this header who somebody is, as X-Remote-User' '--trust-from	where that proxy speaks from; may be repeated' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'metrics'
                printf '%s\n' '--textfile	write them there, all at once, for the textfile collector of node_exporter' '--listen	serve them at /metrics; without HOST on 127.0.0.1, to nobody else' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'retry'
                printf '%s\n' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--reason	why, for whoever reads the ledger later; required' '--new-payload	the next claim may bring another payload' '--help	what it does, with an example'
            case 'skip'
                printf '%s\n' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--reason	why, for whoever reads the ledger later; required' '--help	what it does, with an example'
            case 'unskip'
                printf '%s\n' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--reason	why, for whoever reads the ledger later; required' '--help	what it does, with an example'
            case 'reopen'
                printf '%s\n' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--reason	why, for whoever reads the ledger later; required' '--help	what it does, with an example'
            case 'cancel'
                printf '%s\n' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--reason	why, for whoever reads the ledger later; required' '--help	what it does, with an example'
            case 'resolve'
                printf '%s\n' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--as	what happened; not-done is retried; later: you cannot tell yet, and it is not asked about before --again-in; required' '--again-in	with later: when somebody is to look again (default: 1h)' '--evidence	how you know, kept in the ledger; required' '--attempt-is-dead	its lock is held by a process that is not doing it any more' '--message	not the run itself, but this message of it' '--probe	ask the probe that the configuration has for the job' '--help	what it does, with an example'
            case 'backfill'
                printf '%s\n' '--help	what it does, with an example'
            case 'backfill plan'
                printf '%s\n' '--what	missing (default), failed, skipped, completed, with commas; all: missing, failed and completed' '--order	which first (default: oldest)' '--concurrency	how many at a time (1)' '--stop-after	stop when so many of its windows need a person (default: 3; 0: never)' '--quiet	do not say how far it is' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'backfill start'
                printf '%s\n' '--what	missing (default), failed, skipped, completed, with commas; all: missing, failed and completed' '--order	which first (default: oldest)' '--concurrency	how many at a time (1)' '--stop-after	stop when so many of its windows need a person (default: 3; 0: never)' '--quiet	do not say how far it is' '--scope	the tenant or account whose runs are meant' '--reason	why, for whoever reads the ledger later; required' '--expect	how many windows you expect; with completed, required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'backfill pause'
                printf '%s\n' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'backfill resume'
                printf '%s\n' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'backfill cancel'
                printf '%s\n' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'backfill show'
                printf '%s\n' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'backfill list'
                printf '%s\n' '-n	how many (default: 20)' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'outbox'
                printf '%s\n' '--help	what it does, with an example'
            case 'outbox list'
                printf '%s\n' '--to	only those to this destination' '-n	how many (default: 50)' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'outbox show'
                printf '%s\n' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'outbox deliver'
                printf '%s\n' '--to	only to this destination; repeatable' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'outbox retry'
                printf '%s\n' '--message	which message of the run; required' '--dry-run	say what would change, and change nothing' '--reason	why, for whoever reads the ledger later; required' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'outbox skip'
                printf '%s\n' '--message	which message of the run; required' '--dry-run	say what would change, and change nothing' '--reason	why, for whoever reads the ledger later; required' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'alerts'
                printf '%s\n' '--help	what it does, with an example'
            case 'alerts list'
                printf '%s\n' '--all	those that are over too, the newest first' '-n	how many with --all (default: 50)' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'alerts look'
                printf '%s\n' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'alerts silence'
                printf '%s\n' '--kind	only late, failed, unknown, stuck, superseded, drift (default: all)' '--until	2026-12-24T18:00 (in the schedule\'s zone), with Z for UTC, or +2h' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'alerts unsilence'
                printf '%s\n' '--kind	only late, failed, unknown, stuck, superseded, drift (default: all)' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs'
                printf '%s\n' '--help	what it does, with an example'
            case 'jobs list'
                printf '%s\n' '--all	those that were retired too' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs show'
                printf '%s\n' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs plan'
                printf '%s\n' '--cron	five fields or @daily; may be given several times, all lines are one schedule' '--period	hourly, daily, weekly, monthly, quarterly or yearly: the period is owed once it has ended' '--every	an interval, as 15m or 6h, counted in UTC from --anchor' '--zone	time zone of --cron and --period, as Europe/Berlin or UTC' '--at	wall clock after the period\'s end from which it is due' '--offset	where a period begins: 06:00 of a day, sun of a week, apr of a quarter or year' '--gap	a time that the clocks skip: shift_to_transition, shift_forward or skip' '--fold	a time that the clocks repeat: first, second or both' '--anchor	where --every counts from, as 2026-01-01T00:00:00Z' '--calendar	days off: a list (sat sun 2026-12-28 2021/06-19) or an .ics file; it is named after the file' '--days-off	what is done about them: skip, next or previous business day' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs apply'
                printf '%s\n' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--cron	five fields or @daily; may be given several times, all lines are one schedule' '--period	hourly, daily, weekly, monthly, quarterly or yearly: the period is owed once it has ended' '--every	an interval, as 15m or 6h, counted in UTC from --anchor' '--zone	time zone of --cron and --period, as Europe/Berlin or UTC' '--at	wall clock after the period\'s end from which it is due' '--offset	where a period begins: 06:00 of a day, sun of a week, apr of a quarter or year' '--gap	a time that the clocks skip: shift_to_transition, shift_forward or skip' '--fold	a time that the clocks repeat: first, second or both' '--anchor	where --every counts from, as 2026-01-01T00:00:00Z' '--calendar	days off: a list (sat sun 2026-12-28 2021/06-19) or an .ics file; it is named after the file' '--days-off	what is done about them: skip, next or previous business day' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs pause'
                printf '%s\n' '--until	2026-12-24T18:00 (in the schedule\'s zone), with Z for UTC, or +2h' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs resume'
                printf '%s\n' '--catch-up	what to work of what was held back, this once: each, latest, fresh, \'each max=3\', none; else as the job says' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs scopes'
                printf '%s\n' '--help	what it does, with an example'
            case 'jobs scopes list'
                printf '%s\n' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs scopes add'
                printf '%s\n' '--from	the first window that is owed (newest due)' '--until	the first window that is not owed any more' '--file	more scopes, one a line; - reads standard input' '--expect	change nothing unless N scopes would change' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs scopes retire'
                printf '%s\n' '--at	the first window that is not owed any more (now)' '--skip-owed	skip what is owed and not being worked, too' '--file	more scopes, one a line; - reads standard input' '--expect	change nothing unless N scopes would change' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs rename'
                printf '%s\n' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs retire'
                printf '%s\n' '--skip-owed	skip what is owed and not being worked, too' '--undo	let it come due again; what did meanwhile is skipped' '--from	with --undo: the first window that is owed' '--reason	why, for whoever reads the ledger later; required' '--dry-run	say what would change, and change nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs check'
                printf '%s\n' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'jobs schema'
                printf '%s\n' '--help	what it does, with an example'
            case 'import'
                printf '%s\n' '--help	what it does, with an example'
            case 'import crontab'
                printf '%s\n' '--system	its lines name a user before the command, as in /etc/cron.d' '--user	its lines name none, as those that crontab -l prints' '--cron	which cron reads it, where that matters (CRON_TZ=); else this host\'s' '--write	do it; without it nothing is changed' '--dry-run	nothing is changed: as without --write; every command has this flag' '--undo	take an import back; with --write' '--zone	the zone in which the schedules are meant; else this host\'s' '--prefix	what the names of the jobs begin with, as web1-' '--duly	where duly is there, or \'PYTHON -m duly\'; else as this one' '--json	print one document for programs' '--config	the configuration that the jobs go to; else $DULY_CONFIG, else /etc/duly/duly.toml for a system crontab, and the user\'s (~/.config/duly/duly.toml) for another' '--ledger	written into that file, where it has none; absolute, and without a password' '--help	what it does, with an example'
            case 'import systemd'
                printf '%s\n' '--user	units of this user, not of the system' '--root	look for units below this folder, as in an image' '--write	do it; without it nothing is changed' '--dry-run	nothing is changed: as without --write; every command has this flag' '--undo	take an import back; with --write' '--zone	the zone in which the schedules are meant; else this host\'s' '--prefix	what the names of the jobs begin with, as web1-' '--duly	where duly is there, or \'PYTHON -m duly\'; else as this one' '--json	print one document for programs' '--config	the configuration that the jobs go to; else $DULY_CONFIG, else /etc/duly/duly.toml, with --user the user\'s' '--ledger	written into that file, where it has none; absolute, and without a password' '--help	what it does, with an example'
            case 'import kubernetes'
                printf '%s\n' '--container	the container that does the work, where there are several' '--secret	the secret that has the ledger\'s URL under the key url (duly)' '--write	do it; without it nothing is changed' '--dry-run	nothing is changed: as without --write; every command has this flag' '--undo	take an import back; with --write' '--zone	the zone in which the schedules are meant; else this host\'s' '--prefix	what the names of the jobs begin with, as web1-' '--duly	where duly is there, or \'PYTHON -m duly\'; else as this one' '--json	print one document for programs' '--help	what it does, with an example'
            case 'db'
                printf '%s\n' '--help	what it does, with an example'
            case 'db create'
                printf '%s\n' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'db migrate'
                printf '%s\n' '--dry-run	say what would be applied, and apply nothing' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'db sql'
                printf '%s\n' '--from	only what a ledger lacks that has schema N' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'db restored'
                printf '%s\n' '--at	up to when it is whole, as 2026-11-29T03:00:00Z; a copy that `duly db backup` made knows it' '--dry-run	say what would be in doubt, and change nothing' '--reason	why, for whoever reads the ledger later; required' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'db backup'
                printf '%s\n' '--replace	take the place of a file of that name' '--json	say what was made as one JSON document' '--quiet	do not say how far it is' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'db verify'
                printf '%s\n' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'db prune'
                printf '%s\n' '--older-than	settled for longer than this, as 90d; else what jobs say' '--received	instead of runs, the keys of a source, or of all, that were received and need not be remembered any longer' '--batch	rows in one transaction at most (5000)' '--yes	do it without being asked; required without a terminal' '--dry-run	say what would be forgotten, and forget nothing' '--quiet	do not say how far it is' '--scope	the tenant or account whose runs are meant' '--format	how to print (default: table)' '--json	the same as --format json; its schema is stable' '--time	local to the schedule\'s zone (default), utc, or relative to now' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'doctor'
                printf '%s\n' '--quiet	leave out what is well' '--format	how to print (default: table)' '--json	the same as --format json' '--ledger	sqlite:////absolute/path.db; else $DULY_LEDGER, else the configuration\'s, else this user\'s' '--config	the configuration; else $DULY_CONFIG, else the nearest duly.toml, the user\'s and the system\'s' '--help	what it does, with an example'
            case 'completion'
                printf '%s\n' '--help	what it does, with an example'
            case 'demo'
                printf '%s\n' '--serve	go on afterwards: a small daemon, and the dashboard of it on 127.0.0.1, until Ctrl-C' '--help	what it does, with an example'
        end
        return
    end
    if test $at -eq 0
        switch $here
            case ''
                printf '%s\n' 'exec	wrap a command: what cron, systemd and Kubernetes call' 'due	would exec work something now? 0 yes, 1 no, 255 anything else' 'daemon	work jobs as they come due, beside any number of other daemons and of other triggers' 'status	what needs a person now' 'check	did the period complete? 0 yes, 1 no, 2 cannot tell, 3 not yet' 'explain	why it ran, did not, or will; also for a period that never ran' 'next	coming and past occurrences, windows, and what the clocks do to them' 'runs	the runs in the ledger; show, verify, events: who did what; export: a range for an auditor; verify-export' 'web	the dashboard in a browser: what needs somebody now, the grid, each job and run' 'metrics	what a monitor may watch, for Prometheus: printed, into a file, or served' 'retry	let a failed run be taken at the next poke; runs nothing itself' 'skip	settle a run without doing it; `duly unskip` takes it back' 'unskip	make a skipped run what it was before, and owed' 'reopen	deliberately do a completed run again, as a new revision' 'cancel	ask the attempt at a run to stop, wherever it is; a run that nobody works is skipped' 'resolve	say what happened to a run, or a message of one, whose outcome is unknown' 'backfill	past windows on request: plan and start JOB RANGE; pause, resume, cancel, show ID; list' 'outbox	messages to other systems: list, show, deliver, retry, skip' 'alerts	what somebody is to be told of: list, look, silence, unsilence' 'jobs	the jobs of the ledger: list, show, plan, apply, pause, resume, scopes, rename, retire; those of a file: check' 'import	adopt what runs today: crontab, systemd timers, Kubernetes CronJobs' 'db	the ledger as a database: create, migrate, copy, verify and prune it, or say that it was restored' 'doctor	what is wrong with the ledger, its database or this host, and what to type next' 'completion	what makes bash, zsh or fish complete commands, flags and names of jobs' 'demo	see it work: workers that race and die, each day credited once'
            case 'backfill'
                printf '%s\n' 'plan	what would be done; changes nothing' 'start	owe the windows from now on' 'pause	start nothing more of it until it is resumed; what is running goes on' 'resume	go on with one that is paused or has stopped' 'cancel	end it for good; what is running ends as it ends' 'show	how far one is' 'list	the backfills of the ledger, newest first'
            case 'outbox'
                printf '%s\n' 'list	messages that are not delivered, the oldest of each destination first' 'show	the messages of a run, with each sending; never their bodies' 'deliver	deliver what is due, then end: 0 all is delivered, 75 some waits for its time, 79 for a person, 80 is unknown' 'retry	let one be sent again that was refused or is dead; one that waits for its time, now' 'skip	settle one without sending it; the next one of its run goes'
            case 'alerts'
                printf '%s\n' 'list	alerts that are open, the oldest first, and silences' 'look	look now, and deliver what is to be told: 0 no alert is open, 1 some are' 'silence	tell nothing of a job for a while; what is still so afterwards is told then' 'unsilence	end the silences of a job'
            case 'jobs'
                printf '%s\n' 'list	every job with its schedule' 'show	one job with its policies, versions and scopes' 'plan	what another schedule would change, beside what has been done' 'apply	put another schedule in force' 'pause	start nothing of a job for a while' 'resume	end a pause, and see what is owed' 'scopes	the roster: list, add or retire scopes' 'rename	give a job another name, with all its runs' 'retire	let nothing more of a job come due, or take that back' 'check	read a configuration, and say what it means' 'schema	print the JSON Schema of duly.toml'
            case 'jobs scopes'
                printf '%s\n' 'list	every scope, from when and until when' 'add	put scopes on the roster, or back on it' 'retire	let nothing more come due of scopes'
            case 'import'
                printf '%s\n' 'crontab	lines of cron, wrapped where they stand' 'systemd	timers, whose services get a drop-in' 'kubernetes	CronJobs, whose commands are wrapped in their manifests'
            case 'db'
                printf '%s\n' 'create	make the tables' 'migrate	apply what the ledger lacks' 'sql	print what makes the tables' 'restored	say that the ledger went back in time' 'backup	copy the ledger while it is worked on' 'verify	look whether a ledger, or a copy of one, is whole' 'prune	forget what was settled long ago'
        end
    end
    switch "$here:$at"
        case 'exec:0'
            __duly_offer jobs
        case 'due:0'
            __duly_offer jobs
        case 'status:0'
            __duly_offer jobs
        case 'check:0'
            __duly_offer jobs
        case 'check:1'
            __duly_offer nothing yesterday today
        case 'explain:0'
            __duly_offer jobs
        case 'explain:1'
            __duly_offer nothing yesterday today
        case 'next:0'
            __duly_offer jobs
        case 'runs:0'
            __duly_offer jobs show verify events export verify-export
        case 'runs:*'
            __duly_offer jobs
        case 'retry:0'
            __duly_offer jobs
        case 'retry:1'
            __duly_offer nothing yesterday today
        case 'skip:0'
            __duly_offer jobs
        case 'skip:1'
            __duly_offer nothing yesterday today
        case 'unskip:0'
            __duly_offer jobs
        case 'unskip:1'
            __duly_offer nothing yesterday today
        case 'reopen:0'
            __duly_offer jobs
        case 'reopen:1'
            __duly_offer nothing yesterday today
        case 'cancel:0'
            __duly_offer jobs
        case 'cancel:1'
            __duly_offer nothing yesterday today
        case 'resolve:0'
            __duly_offer jobs
        case 'resolve:1'
            __duly_offer nothing yesterday today
        case 'backfill plan:0'
            __duly_offer jobs
        case 'backfill start:0'
            __duly_offer jobs
        case 'backfill list:0'
            __duly_offer jobs
        case 'outbox show:0'
            __duly_offer jobs
        case 'outbox show:1'
            __duly_offer nothing yesterday today
        case 'outbox retry:0'
            __duly_offer jobs
        case 'outbox retry:1'
            __duly_offer nothing yesterday today
        case 'outbox skip:0'
            __duly_offer jobs
        case 'outbox skip:1'
            __duly_offer nothing yesterday today
        case 'alerts silence:0'
            __duly_offer jobs
        case 'alerts unsilence:0'
            __duly_offer jobs
        case 'jobs show:0'
            __duly_offer jobs
        case 'jobs plan:0'
            __duly_offer jobs
        case 'jobs apply:0'
            __duly_offer jobs
        case 'jobs pause:0'
            __duly_offer jobs
        case 'jobs resume:0'
            __duly_offer jobs
        case 'jobs scopes list:0'
            __duly_offer jobs
        case 'jobs scopes add:0'
            __duly_offer jobs
        case 'jobs scopes add:*'
            __duly_offer scopes
        case 'jobs scopes retire:0'
            __duly_offer jobs
        case 'jobs scopes retire:*'
            __duly_offer scopes
        case 'jobs rename:0'
            __duly_offer jobs
        case 'jobs retire:0'
            __duly_offer jobs
        case 'jobs check:0'
            __duly_offer files
        case 'import crontab:0'
            __duly_offer files
        case 'import kubernetes:*'
            __duly_offer files
        case 'db backup:0'
            __duly_offer files
        case 'db verify:0'
            __duly_offer files
        case 'db prune:0'
            __duly_offer jobs
        case 'completion:0'
            __duly_offer nothing bash zsh fish
    end
end

complete -c duly -f -a '(__duly_complete)'
