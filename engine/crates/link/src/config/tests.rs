//! What is read, and what is refused with which field.

use super::*;

fn with(a_to_b: &str) -> Result<Config, ConfigError> {
    Config::parse(&format!(r#"{{"a_device": "ra", "b_device": "rb", "a_to_b": {a_to_b}}}"#))
}

#[test]
fn the_example_of_the_contract_is_read() {
    let config = Config::parse(
        r#"{"a_device": "ra", "b_device": "rb", "seed": 7, "split": "merge",
"a_to_b": [{"kind": "loss", "probability": 0.02}, {"kind": "rate", "bits_per_s": 20000000, "queue_bytes": 125000},
           {"kind": "delay", "delay_ns": 25000000}],
"b_to_a": [], "log_file": null, "realtime": true, "spin_ns": 60000, "cpu": null}"#,
    )
    .unwrap();
    assert_eq!((config.seed, config.split, config.realtime), (7, Split::Merge, true));
    assert_eq!(config.impairments(0, 0).unwrap().len(), 3);
    assert!(!config.bridge, "the lab asks for none");
}

#[test]
fn every_kind_is_in_the_table() {
    let documents = [
        r#"{"kind": "delay", "delay_ns": 1}"#,
        r#"{"kind": "jitter", "distribution": "normal", "sigma_ns": 5}"#,
        r#"{"kind": "jitter", "distribution": "uniform", "range_ns": 5, "reorder": true}"#,
        r#"{"kind": "jitter", "distribution": "pareto", "scale_ns": 5, "shape": 2.5, "reorder": false}"#,
        r#"{"kind": "jitter", "distribution": "table", "table_ns": [0, 5, -5]}"#,
        r#"{"kind": "loss", "probability": 1}"#,
        r#"{"kind": "gilbert_elliott", "good_to_bad": 0.1, "bad_to_good": 0.5}"#,
        r#"{"kind": "loss_schedule", "drop": [0, 5]}"#,
        r#"{"kind": "corrupt", "probability": 0.1}"#,
        r#"{"kind": "duplicate", "probability": 0.1}"#,
        r#"{"kind": "reorder", "probability": 0.1, "gap_ns": 1000}"#,
        r#"{"kind": "rate", "bits_per_s": 1000000, "queue_packets": 10}"#,
        r#"{"kind": "rate", "bits_per_s": 1000000, "discipline": "codel", "target_ns": 5, "interval_ns": 10}"#,
        r#"{"kind": "trace", "opportunities_ms": [0, 1, 1, 3], "queue_bytes": 15000}"#,
    ];
    assert_eq!(with(&format!("[{}]", documents.join(","))).unwrap().directions[0].len(), documents.len());
}

#[test]
fn the_schema_has_the_kinds_of_the_table() {
    let schema = schemars::schema_for!(Form);
    let forms = schema.get("oneOf").and_then(Value::as_array).unwrap();
    let kinds: Vec<&str> = forms.iter().map(|form| form["properties"]["kind"]["const"].as_str().unwrap()).collect();
    assert_eq!(kinds, KINDS);
}

#[test]
fn what_is_wrong_is_named_with_its_field() {
    let cases = [
        (r#"[{"kind": "loss", "probability": 1.5}]"#, "a_to_b[0].probability"),
        (r#"[{"kind": "loss", "probability": 0.5, "chance": 1}]"#, "a_to_b[0]"),
        (r#"[{"kind": "delay", "delay_ns": 1}, {"kind": "vanish"}]"#, "a_to_b[1].kind"),
        (r#"[{"kind": "delay", "delay_ns": -1}]"#, "a_to_b[0]"),
        (r#"[{"kind": "delay", "delay_ns": 99999999999999}]"#, "a_to_b[0].delay_ns"),
        (r#"[{"delay_ns": 1}]"#, "a_to_b[0].kind"),
        (r#"[5]"#, "a_to_b[0]"),
        (r#"[{"kind": "jitter", "distribution": "cauchy"}]"#, "a_to_b[0]"),
        (r#"[{"kind": "jitter", "distribution": "normal", "sigma_ns": 1, "range_ns": 1}]"#, "a_to_b[0]"),
        (r#"[{"kind": "jitter", "distribution": "table", "table_ns": []}]"#, "a_to_b[0].table_ns"),
        (r#"[{"kind": "reorder", "probability": 0.1, "gap_ns": 1000}]"#, "a_to_b[0]"),
        (r#"[{"kind": "rate", "bits_per_s": 0}]"#, "a_to_b[0].bits_per_s"),
        (r#"[{"kind": "rate", "bits_per_s": 1000, "queue_bytes": 0}]"#, "a_to_b[0].queue_bytes"),
        (r#"[{"kind": "rate", "bits_per_s": 1000, "target_ns": 5}]"#, "a_to_b[0]"),
        (r#"[{"kind": "trace", "opportunities_ms": [3, 1]}]"#, "a_to_b[0].opportunities_ms"),
        (r#"[{"kind": "trace", "opportunities_ms": []}]"#, "a_to_b[0].opportunities_ms"),
        (r#"[{"kind": "trace", "opportunities_ms": [0]}]"#, "a_to_b[0].opportunities_ms"),
    ];
    for (impairments, field) in cases {
        let error = with(impairments).unwrap_err();
        assert_eq!(error.field, field, "{impairments}: {}", error.message);
    }
    for (document, field) in [
        (r#"{"a_device": "ra", "b_device": "ra"}"#, "b_device"),
        (r#"{"a_device": "", "b_device": "rb"}"#, "a_device"),
        (r#"{"a_device": "ra", "b_device": "a-name-that-is-too-long"}"#, "b_device"),
        (r#"{"a_device": "ra", "b_device": "rb", "colour": 1}"#, "config"),
        (r#"{"a_device": "ra", "b_device": "rb", "spin_ns": 2000000}"#, "spin_ns"),
        (r#"{"a_device": "ra", "b_device": "rb", "linger_ns": 10000000001}"#, "linger_ns"),
        (r#"{"a_device": "ra", "b_device": "rb", "linger_ns": 1, "capture_file": "x"}"#, "linger_ns"),
        (r#"{"a_device": "ra", "b_device": "rb", "bridge": 1}"#, "config"),
        ("not json", "config"),
    ] {
        assert_eq!(Config::parse(document).unwrap_err().field, field, "{document}");
    }
}
