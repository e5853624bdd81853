//! A process of its own: the limit that makes the kernel refuse a timer holds for all threads.

use trifecta_wire::ticker::Ticker;

const INTERVAL_NS: u64 = 1_000_000_000;

fn limit_timers(soft: libc::rlim_t, hard: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: `limit` lives over the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_SIGPENDING, &raw const limit) }, 0);
}

#[test]
fn a_thread_that_was_refused_does_not_ask_again() {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `before` lives over the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_SIGPENDING, &raw mut before) }, 0);
    limit_timers(0, before.rlim_max);
    // A timer takes a place among the pending signals (getrlimit(2)); the first may still be within a limit of 0.
    let first: Vec<_> = (0..2).map(|_| Ticker::new(INTERVAL_NS)).collect();
    let refused = first.into_iter().find_map(Result::err).expect("the kernel refuses a timer");
    limit_timers(before.rlim_cur, before.rlim_max);
    assert_eq!(refused.raw_os_error(), Some(libc::EAGAIN));
    assert_eq!(Ticker::new(INTERVAL_NS).unwrap_err().raw_os_error(), Some(libc::EAGAIN), "not asked again");
    std::thread::spawn(|| assert!(Ticker::new(INTERVAL_NS).is_ok(), "another thread is asked for")).join().unwrap();
}
