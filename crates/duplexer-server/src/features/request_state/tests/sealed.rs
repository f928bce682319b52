//! Sealing: contents, keys, and the way back.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;
use duplexer_core::dispatch::lock;

/// RST-01, RST-02, RST-03: the handler sees its own text, the client never does.
#[tokio::test]
async fn a_state_comes_back_as_it_was() {
    let running = start(RequestState::default()).await;
    let client = anonymous();
    for (method, params) in [
        (Method::ToolsCall, r#"{"name":"t","arguments":{"b":[1,{}],"a":"é"}"#),
        (Method::PromptsGet, r#"{"name":"p","arguments":{"x":"y"}"#),
        (Method::ResourcesRead, r#"{"uri":"file:///x""#),
    ] {
        let sealed = asked(&running, &client, method, &format!("{params}}}")).await;
        assert!(sealed.starts_with("v1.") && !sealed.contains(PLAIN), "{sealed}");
        let retry =
            format!(r#"{params},"requestState":"{sealed}","_meta":{{"x":1}},"inputResponses":{{}}}}"#);
        let outcome = call(&running, &client, method, &retry).await.unwrap();
        assert_eq!(outcome.result_type(), result_type::COMPLETE);
        if method == Method::ToolsCall {
            assert_eq!(received_state(&outcome), PLAIN);
        }
    }
}

/// RST-01, RST-02: other methods, and requests without a state, are left alone.
#[tokio::test]
async fn where_there_is_no_state_nothing_happens() {
    let running = start(RequestState::default()).await;
    let client = anonymous();
    let listed = call(&running, &client, Method::ToolsList, r#"{"requestState":"forged"}"#).await;
    assert!(listed.unwrap().downcast_ref::<ListToolsResult>().is_some());
    for params in [FIRST, r#"{"name":"t","requestState":null}"#, r#"{"name":"t","x":"requestState"}"#] {
        asked(&running, &client, Method::ToolsCall, params).await;
    }
    let invalid = call(&running, &client, Method::ToolsCall, r#"{"requestState":null}"#).await.unwrap_err();
    assert!(matches!(invalid, McpError::InvalidParams(_)));
}

/// RST-09, P-MRTR-11: instances with the same keys open each other's states; the previous key still opens.
#[tokio::test]
async fn a_state_sealed_with_the_previous_key_opens() {
    let (old, new) = ([1; 32], [2; 40]);
    let before = start(RequestState::keys([&old[..]]).unwrap()).await;
    let after = start(RequestState::keys([&new[..], &old]).unwrap()).await;
    let dropped = start(RequestState::keys([&new[..]]).unwrap()).await;
    let client = anonymous();
    let by_old = with_state(&asked(&before, &client, Method::ToolsCall, FIRST).await);
    let by_new = with_state(&asked(&after, &client, Method::ToolsCall, FIRST).await);
    assert_eq!(received_state(&call(&after, &client, Method::ToolsCall, &by_old).await.unwrap()), PLAIN);
    assert_eq!(received_state(&call(&dropped, &client, Method::ToolsCall, &by_new).await.unwrap()), PLAIN);
    assert_refused(call(&before, &client, Method::ToolsCall, &by_new).await, "the first key seals");
    assert_refused(call(&dropped, &client, Method::ToolsCall, &by_old).await, "the old key is gone");
}

/// RST-10: an ephemeral key is this policy's own.
#[tokio::test]
async fn an_ephemeral_key_opens_only_its_own_states() {
    let (one, other) = (start(RequestState::ephemeral()).await, start(RequestState::ephemeral()).await);
    let retry = with_state(&asked(&one, &anonymous(), Method::ToolsCall, FIRST).await);
    assert_refused(call(&other, &anonymous(), Method::ToolsCall, &retry).await, "another process");
}

/// RST-08: a token made by another implementation of the same derivation.
#[test]
fn keys_and_tokens_are_derived_as_others_derive_them() {
    let secret: Vec<u8> = (0..32).collect();
    let ring = KeyRing::new([&secret]).unwrap();
    let token = "v1.NJwUgAABAgMEBQYHCAkKC2-hkEnpEqpuV0tIRJFUVxRECs1FxDrSXBGDUglUvg";
    assert_eq!(ring.open(token).unwrap(), b"made elsewhere");
    let (one, other) = (ring.seal(b"x").unwrap(), ring.seal(b"x").unwrap());
    assert_ne!(one, other, "every seal has a nonce of its own");
}

/// RST-04, RST-05, RST-11: the claims, their order, and their spelling.
#[tokio::test]
async fn the_claims_say_until_when_for_what_and_for_whom() {
    let clock = Hands::default();
    let policy = || clock.on(RequestState::codec(Open));
    let running = start(policy()).await;
    let first = r#"{"name":"t","arguments":{"b":"é", "a":[1,2.50]}}"#;
    let claims = asked(&running, &anonymous(), Method::ToolsCall, first).await;
    assert_eq!(
        claims,
        r#"{"v":1,"iat":1800000000.0,"exp":1800000600.0,"m":"tools/call","t":"t","a":"vw5kN8FbSO2yA2UKSGCDqg","s":"what the handler wants back: \"\u00e9\"","aud":"test"}"#
    );
    let claims = asked(&running, &anonymous(), Method::ResourcesRead, r#"{"uri":"u:\ud83d\ude00"}"#).await;
    assert!(
        claims.contains(r#""m":"resources/read","t":"u:\ud83d\ude00","a":"RBNvo1WzZ4oRRq0W9-hkng","#),
        "{claims}"
    );
    let other = start(policy().audience("us").ttl(Duration::from_millis(1500)).unwrap()).await;
    let claims = asked(&other, &anonymous(), Method::ToolsCall, r#"{"name":"t"}"#).await;
    assert!(claims.contains(r#""exp":1800000001.5,"#) && claims.ends_with(r#""aud":"us"}"#), "{claims}");
}

/// RST-07: the principal is a salted digest of its canonical text.
#[tokio::test]
async fn the_principal_is_claimed_by_a_salted_digest() {
    let running = start(RequestState::codec(Open)).await;
    let mut principal = Principal::new("c");
    principal.subject = Some("s".into());
    let client = authenticated(principal);
    let mut claims = Vec::new();
    for _ in 0..2 {
        let text = asked(&running, &client, Method::ToolsCall, FIRST).await;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let claim = URL_SAFE_NO_PAD.decode(value["p"].as_str().unwrap()).unwrap();
        let (salt, digest) = claim.split_at(8);
        let label = b"mcp/request-state/principal:";
        let expected = Sha256::new()
            .chain_update(label)
            .chain_update(salt)
            .chain_update(br#"["c",null,"s"]"#)
            .finalize();
        assert_eq!(digest, &expected[..16]);
        claims.push(claim);
    }
    assert_ne!(claims[0], claims[1]);
}

/// RST-03: results that are text are sealed like typed ones; what has no state to seal is left alone.
#[tokio::test]
async fn a_result_made_by_hand_is_sealed_too() {
    async fn answer(result: &'static str) -> Result<Outcome, McpError> {
        let server = Server::builder("test", "0")
            .request_state(RequestState::codec(Open))
            .middleware(move |_, _, _| async move { Ok(Outcome::raw(result)) });
        let running = server.build().unwrap().start().await.unwrap();
        call(&running, &anonymous(), Method::ToolsCall, FIRST).await
    }
    let result = r#"{"resultType":"input_required", "x":[1] ,"requestState":"plain","y":{}}"#;
    let sealed = answer(result).await.unwrap();
    let text: serde_json::Value = serde_json::from_str(sealed.as_text().unwrap()).unwrap();
    assert!(text["requestState"].as_str().unwrap().contains(r#""s":"plain""#));
    assert_eq!((&text["x"], &text["y"]), (&serde_json::json!([1]), &serde_json::json!({})));
    for untouched in [
        r#"{"requestState":"plain"}"#,
        r#"{"resultType":"complete","requestState":"plain"}"#,
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"resultType":"input_required","requestState":5}"#,
    ] {
        assert_eq!(answer(untouched).await.unwrap().as_text(), Some(untouched));
    }
    let twice = r#"{"resultType":"input_required","requestState":"a","requestState":"b"}"#;
    assert_unsealed(answer(twice).await, "which of the two would be sealed?");
}

/// RST-12: a codec or a principal that fails closes both ways.
#[tokio::test]
async fn where_codec_or_principal_fail_nothing_is_opened_or_sealed() {
    struct Broken;
    impl RequestStateCodec for Broken {
        fn seal(&self, _: &[u8]) -> Result<String, BoxError> {
            Err("secret detail".into())
        }
        fn open(&self, _: &str) -> Result<Vec<u8>, BoxError> {
            Err("secret detail".into())
        }
    }
    let no_principal = RequestState::codec(Open).principal(|_| Err("secret detail".into()));
    for policy in [RequestState::codec(Broken), no_principal] {
        let running = start(policy).await;
        let client = anonymous();
        assert_unsealed(call(&running, &client, Method::ToolsCall, FIRST).await, "sealing");
        assert_refused(call(&running, &client, Method::ToolsCall, &with_state("x")).await, "opening");
    }
}

/// RST-12: one round has one binding, and a policy may say who the principal is.
#[tokio::test]
async fn the_binding_that_opened_a_state_seals_the_next_one() {
    let asked_for = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&asked_for);
    let running = start(RequestState::codec(Open).principal(move |cx| {
        let mut count = lock(&counter);
        *count += 1;
        // Another principal every time, except that the second call repeats the first.
        Ok(Some(format!("{} {}", cx.method(), *count / 2)))
    }))
    .await;
    let client = anonymous();
    *lock(&asked_for) = 1;
    let first = asked(&running, &client, Method::ToolsCall, FIRST).await;
    let more = first.replace(r#"what the handler wants back: \"\u00e9\""#, "more");
    let second = call(&running, &client, Method::ToolsCall, &with_state(&more)).await.unwrap();
    assert_eq!(*lock(&asked_for), 3, "once for the first round, once for the second");
    let third = call(&running, &client, Method::ToolsCall, &with_state(&state_of(&second))).await;
    assert_refused(third, "by now the principal is another");
}

/// RST-11: what is installed later replaces what was installed before.
#[tokio::test]
async fn a_later_policy_replaces_an_earlier_one() {
    let server = handlers("test").request_state(RequestState::ephemeral());
    let server = server.request_state(RequestState::codec(Open)).build().unwrap();
    let running = server.start().await.unwrap();
    let claims = asked(&running, &anonymous(), Method::ToolsCall, FIRST).await;
    assert!(claims.starts_with(r#"{"v":1,"#), "sealed once, by the later one: {claims}");
}

/// A subscriber that counts warnings.
struct Warnings(Arc<AtomicU64>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// RST-10: a key that cannot work among several instances is warned about when the server is built.
#[test]
fn a_key_of_one_process_among_several_is_warned_about() {
    let warnings = |state: RequestState| {
        let count = Arc::new(AtomicU64::new(0));
        let build = || handlers("test").request_state(state).build().map(drop);
        tracing::subscriber::with_default(Warnings(Arc::clone(&count)), build).unwrap();
        count.load(Ordering::Relaxed)
    };
    assert_eq!(warnings(RequestState::ephemeral().instances(Instances::Several)), 1);
    assert_eq!(warnings(RequestState::ephemeral().instances(Instances::One)), 0);
    assert_eq!(warnings(RequestState::ephemeral()), 0);
    assert_eq!(warnings(RequestState::keys([SECRET]).unwrap().instances(Instances::Several)), 0);
}

proptest! {
    /// RST-02, RST-08: any state survives the way out and back.
    #[test]
    fn what_is_sealed_opens(state in any::<String>(), target in any::<String>(), user in any::<Option<String>>()) {
        let ring = KeyRing::new([SECRET]).unwrap();
        let target = serde_json::to_string(&target).unwrap();
        let bind = |user| Binding::new(Method::ToolsCall, Occurrence::One(&target), Occurrence::Absent, user).unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(START);
        let claims = claims::write(&state, &bind(user.clone()), "a", now, DEFAULT_TTL).unwrap();
        prop_assert!(claims.is_ascii());
        let sealed = ring.seal(&claims).unwrap();
        let opened = ring.open(&sealed).unwrap();
        prop_assert_eq!(&opened, &claims);
        prop_assert_eq!(claims::read(&opened, &bind(user), "a", now).unwrap(), state);
    }
}

/// SCL-12, SCL-52: a key is rotated in three rolling steps, during each of which nodes before and after it open each other's
/// states.
#[test]
fn a_key_is_rotated_in_three_rolling_steps() {
    let (old, new) = ([6_u8; 32], [7_u8; 32]);
    let steps = [vec![old], vec![old, new], vec![new, old], vec![new]];
    let rings = steps.map(|secrets| KeyRing::new(secrets).unwrap());
    for (before, after) in rings.iter().zip(&rings[1..]) {
        for (from, to) in [(before, after), (after, before)] {
            let opened = to.open(&from.seal(b"state").unwrap());
            // The old key is removed when the states that it has sealed have expired.
            assert_eq!(opened.unwrap(), b"state");
        }
    }
    assert!(rings[3].open(&rings[0].seal(b"state").unwrap()).is_err());
}
