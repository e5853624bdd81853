//! The disciplines of a device, from `tc -s -j qdisc show`, and what those of a direction counted.

use serde::Deserialize;

/// One discipline and what it counted.
#[derive(Debug, Deserialize)]
pub struct Discipline {
    pub kind: String,
    #[serde(default)]
    pub handle: String,
    #[serde(default)]
    pub root: bool,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    backlog: u64,
    #[serde(default)]
    qlen: u64,
}

/// What became of a direction's packets.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// By netem: its losses.
    pub lost: u64,
    pub queue_dropped: u64,
    pub in_flight: u64,
    pub in_flight_bytes: u64,
}

impl Counters {
    /// Puts them together; netem's own drops count those of the discipline behind it, too (sch_netem.c,
    /// `netem_dequeue`).
    ///
    /// # Errors
    /// When there is no netem.
    pub fn of(all: &[Discipline]) -> Result<Self, &'static str> {
        let find = |kind: &str| all.iter().find(|one| one.kind == kind);
        let netem = find("netem").ok_or("the netem that was there is gone")?;
        let queue_dropped = find("tbf").map_or(0, |tbf| tbf.drops);
        Ok(Counters {
            delivered: netem.packets,
            delivered_bytes: netem.bytes,
            lost: netem.drops.saturating_sub(queue_dropped),
            queue_dropped,
            in_flight: netem.qlen,
            in_flight_bytes: netem.backlog,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As iproute2 6.1 of Debian 12 writes it, shortened.
    const TOLD: &str = r#"[{"kind":"netem","handle":"1:","root":true,"refcnt":2,"options":{"limit":1000000},
        "bytes":4200,"packets":40,"drops":7,"overlimits":0,"requeues":0,"backlog":120,"qlen":2},
        {"kind":"tbf","handle":"10:","parent":"1:1","options":{"rate":2500000},
        "bytes":4200,"packets":40,"drops":5,"overlimits":60,"requeues":0,"backlog":0,"qlen":0}]"#;

    fn read(told: &str) -> serde_json::Result<Vec<Discipline>> {
        serde_json::from_str(told)
    }

    #[test]
    fn losses_are_told_from_what_a_full_queue_dropped() {
        let told = Counters::of(&read(TOLD).unwrap()).unwrap();
        assert_eq!((told.delivered, told.lost, told.queue_dropped, told.in_flight), (40, 2, 5, 2));
    }

    #[test]
    fn without_netem_nothing_is_made_up() {
        assert!(Counters::of(&read("[]").unwrap()).unwrap_err().contains("gone"));
        assert!(read("{").is_err());
    }
}
