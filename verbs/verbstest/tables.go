package verbstest

// The lists: yes, the verb applies; named, only to what somebody has named; -, it does not.
const (
	jobTable = `
                            run-job skip-next restart-job pause-job resume-job stop-job backfill-job
 one_shot scheduled         yes     -         -           -         -          yes      -
*one_shot running           yes     -         -           -         -          yes      -
 one_shot failing           yes     -         -           -         -          yes      -
 one_shot paused            yes     -         -           -         yes        yes      -
 one_shot waiting           yes     -         -           -         -          yes      -
*one_shot completed         yes     -         -           -         -          -        -
 one_shot failed            yes     -         -           -         -          -        -
 one_shot stopped           yes     -         -           -         -          -        -
 one_shot terminated        yes     -         -           -         -          -        -
 one_shot deleted           yes     -         -           -         -          -        -
 one_shot canceling         yes     -         -           -         -          yes      -
*recurring scheduled        yes     yes       -           yes       -          -        yes
*recurring running          yes     yes       -           yes       -          yes      yes
 recurring failing          yes     yes       -           yes       -          yes      yes
 recurring failing idle     yes     yes       -           yes       -          -        yes
*recurring paused           yes     yes       -           -         yes        yes      yes
 recurring paused idle      yes     yes       -           -         yes        -        yes
 recurring waiting          yes     yes       -           yes       -          yes      yes
 recurring completed        yes     yes       -           -         -          -        yes
 recurring failed           yes     yes       -           -         -          -        yes
 recurring stopped          yes     yes       -           -         -          -        yes
 recurring terminated       yes     yes       -           -         -          -        yes
 recurring deleted          yes     yes       -           -         -          -        yes
 recurring canceling        yes     yes       -           yes       -          yes      yes
 continuous scheduled       yes     -         yes         yes       -          yes      -
*continuous running         yes     -         yes         yes       -          yes      -
 continuous failing         yes     -         yes         yes       -          yes      -
*continuous paused          -       -         -           -         yes        yes      -
 continuous waiting         yes     -         yes         yes       -          yes      -
 continuous completed       -       -         yes         -         -          -        -
 continuous failed          -       -         yes         -         -          -        -
*continuous stopped         -       -         yes         -         -          -        -
 continuous terminated      -       -         yes         -         -          -        -
 continuous deleted         -       -         yes         -         -          -        -
 continuous canceling       yes     -         yes         yes       -          yes      -
 queued scheduled           yes     -         -           -         -          yes      -
 queued running             yes     -         -           -         -          yes      -
 queued failing             yes     -         -           -         -          yes      -
 queued paused              yes     -         -           -         yes        yes      -
*queued waiting             yes     -         -           -         -          yes      -
 queued completed           yes     -         -           -         -          -        -
 queued failed              yes     -         -           -         -          -        -
 queued stopped             yes     -         -           -         -          -        -
 queued terminated          yes     -         -           -         -          -        -
 queued deleted             yes     -         -           -         -          -        -
 queued canceling           yes     -         -           -         -          yes      -
`

	runTable = `
                            retry-run cancel-run terminate-run
*run running                -         yes        yes
 run waiting                -         yes        yes
*run completed              -         -          -
*run failed                 yes       -          -
*run canceled               named     -          -
*run terminated             named     -          -
 run timed_out              yes       -          -
 run held_back              -         -          -
 run superseded             -         -          -
 run canceling              -         yes        yes
 run interrupted            -         -          -
 iteration running          -         -          -
 iteration waiting          -         -          -
 iteration completed        -         -          -
 iteration failed           -         -          -
 iteration canceled         -         -          -
 iteration terminated       -         -          -
 iteration timed_out        -         -          -
 iteration held_back        -         -          -
 iteration superseded       -         -          -
 iteration canceling        -         -          -
 iteration interrupted      -         -          -
`

	queueTable = `
                            resume-queue skip-failed-item recover-queue pause-queue drain-queue purge-queue set-queue-failure-policy
*empty idle                 -            -                -             yes         yes         -           yes
 waiting idle               -            -                -             yes         yes         yes         yes
 empty running              -            -                -             yes         yes         -           yes
 waiting running            -            -                -             yes         yes         yes         yes
*empty paused               yes          -                -             -           yes         -           yes
*waiting paused             yes          -                -             -           yes         yes         yes
 empty halted               yes          yes              -             yes         yes         -           yes
*waiting halted             yes          yes              -             yes         yes         yes         yes
 empty draining             yes          -                -             yes         -           -           yes
 waiting draining           yes          -                -             yes         -           yes         yes
*empty drained              yes          -                -             yes         -           -           yes
 waiting drained            yes          -                -             yes         -           yes         yes
 empty stopping             -            -                -             yes         yes         -           yes
 waiting stopping           -            -                -             yes         yes         yes         yes
 empty ended                -            -                yes           -           -           -           -
*waiting ended              -            -                yes           -           -           -           -
`

	loadTable = `
                            skip-held-message
 load free                  -
 load held                  yes
`
)
